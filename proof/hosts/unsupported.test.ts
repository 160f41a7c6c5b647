import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { terraformIsHere } from "../terraform/workspace.js";
import { Deployment } from "./deploy/deployment.js";
import { bootHost, type Release, type TestHost } from "./harness/index.js";

/** What a host cannot run, or a user may not do, is refused by name before anything large is sent. */
const run = terraformIsHere() ? describe : describe.skip;

run("a deployment to a host that is not supported", () => {
  const hosts: TestHost[] = [];
  const deployments: Deployment[] = [];

  afterAll(async () => {
    for (const one of deployments) one.remove();
    for (const host of hosts) await host.stop();
  });

  async function ready(release: Release): Promise<{ host: TestHost; deployment: Deployment }> {
    const host = await bootHost({ name: release, release });
    hosts.push(host);
    const deployment = new Deployment(host, {
      privateKeyFile: host.sshKey,
      hostKey: await host.must("cat /etc/ssh/ssh_host_ecdsa_key.pub"),
      whenDestroyed: "keep",
    });
    deployments.push(deployment);
    await deployment.buildRuntime();
    return { host, deployment };
  }

  async function refused(deployment: Deployment): Promise<string> {
    const { code, stdout } = await deployment.terraform("apply -input=false -auto-approve -no-color");
    expect(code).toBe(1);
    return stdout.replaceAll(/^.*\(remote-exec\): /gm, "");
  }

  test("systemd of Debian 11, none, and a user without root's rights", async () => {
    const { host, deployment } = await ready("bullseye");
    deployment.synthesize();
    deployment.init();
    expect(await refused(deployment)).toContain(
      `host: has a systemd that is too old [host.old-systemd]\n    received: "247"\n    allowed:  systemd 249 or later\n`,
    );
    // Where systemd has not booted the system, this directory is missing: sd_booted(3).
    await host.must("mv /run/systemd/system /run/systemd/hidden");
    expect(await refused(deployment)).toContain("host: does not run systemd [host.no-systemd]\n");
    await host.must("mv /run/systemd/hidden /run/systemd/system");
    await host.must(`useradd --create-home --shell /bin/sh deploy
      install -d -m 0700 -o deploy /home/deploy/.ssh
      install -m 0600 -o deploy /root/.ssh/authorized_keys /home/deploy/.ssh/`);
    const hostKey = await host.must("cat /etc/ssh/ssh_host_ecdsa_key.pub");
    const other = deployment.by({
      privateKeyFile: host.sshKey,
      hostKey,
      user: "deploy",
      sudo: true,
      whenDestroyed: "keep",
    });
    other.synthesize();
    expect(await refused(other)).toContain(
      "delivery.user: may not use sudo without a password [delivery.no-root]\n",
    );
    expect((await host.run("ls -d /var/lib/portico /etc/portico")).stdout).toBe("");
  });

  test("another processor than that of the Node that is delivered", async () => {
    const { host, deployment } = await ready("trixie");
    const nodeFile = deployment.foreignNode();
    deployment.synthesize({ nodeFile });
    deployment.init();
    expect(await refused(deployment)).toMatch(
      /^host: has a processor that the delivered Node does not support \[host\.other-processor\]\n {4}received: "\w+"\n {4}allowed: {2}\w+\n/m,
    );
    const node = createHash("sha256").update(readFileSync(nodeFile)).digest("hex");
    const sent = await host.run(`ls -d /etc/portico /usr/lib/portico; find /var/lib/portico -name ${node}`);
    expect(sent.stdout).toBe("");
  });
});
