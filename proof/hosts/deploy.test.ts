import { terraformIsHere } from "../terraform/workspace.js";
import { Deployment } from "./deploy/deployment.js";
import type { SshDeliveryOptions } from "../../src/index.js";
import { bootHost, type Namespace, type TestHost } from "./harness/index.js";
import { Intruder } from "./deploy/intruder.js";
import { differences, hostTree } from "./deploy/hostTree.js";
import { startLoad } from "./deploy/load.js";

/**
 * The whole life of a front end on a real host: a bare Debian with the application's daemons, reached over ssh only by
 * the real Terraform with the real providers, and looked at from another network.
 */
const run = terraformIsHere() ? describe : describe.skip;

const FIVE_MINUTES = 300_000;

run("a deployment over ssh", () => {
  let host: TestHost;
  let outside: Namespace;
  let deployment: Deployment;
  /** Of another stack. */
  let second: Deployment;
  let before: ReadonlyMap<string, string>;
  /** Everything that Terraform said. */
  let said = "";

  const ssh = async (more: Partial<SshDeliveryOptions> = {}): Promise<SshDeliveryOptions> => ({
    privateKeyFile: host.sshKey,
    hostKey: await host.must("cat /etc/ssh/ssh_host_ecdsa_key.pub"),
    whenDestroyed: "purge",
    ...more,
  });

  /** What a deployment must not touch that is not the host's. */
  const deployed = (): Promise<string> =>
    host.must(`sha256sum /etc/portico/tls/* /etc/systemd/system/portico* /var/lib/portico/deployment/state.json
      nft list ruleset; systemctl is-enabled portico.service; systemctl show -P MainPID portico.service`);

  const apply = async (): Promise<string> => {
    const text = await deployment.apply();
    said += text;
    return text;
  };

  beforeAll(async () => {
    host = await bootHost({ name: "files" });
    outside = await host.outside();
    deployment = new Deployment(host, await ssh());
    await deployment.installApplication();
    before = await hostTree(host);
    await deployment.buildRuntime();
    deployment.synthesize();
    deployment.init();
  }, 600_000);

  afterAll(async () => {
    deployment?.remove();
    second?.remove();
    await host?.stop();
  });

  test(
    "starts on a host without Node, and its key is only in state",
    async () => {
      expect((await host.run("command -v node")).code).not.toBe(0);
      // Node has just been uploaded, and may not run where it lies.
      await host.must("mount --bind /var /var && mount -o remount,bind,noexec /var");
      const { code, stdout, stderr } = await deployment.tryApply();
      // Whoever opened a file there meanwhile keeps it.
      await host.must("umount --lazy /var");
      said += stdout + stderr;
      expect([code, stdout]).toEqual([
        1,
        expect.stringMatching(
          /\/var\/lib\/portico\/incoming\/\S+\/run\.[0-9a-f-]+\/node: cannot be run: its mode does not allow it, or its file system is mounted noexec \(findmnt --target \S+\)/,
        ),
      ]);
      expect(
        (await host.run("ls -d /etc/portico /usr/lib/portico /etc/systemd/system/portico*")).stdout,
      ).toBe("");
      const intruder = await Intruder.letIn(host);
      await apply();
      expect(await intruder.end()).toEqual({ changed: "", taken: false });
      expect(await deployment.planned()).toEqual([]);
      const modes = await host.must(
        "stat -c '%a %U %n' /etc/portico/tls/* /usr/lib/portico/* /var/lib/portico/*",
      );
      expect(modes.split("\n")).toEqual(
        expect.arrayContaining([
          "600 root /etc/portico/tls/privkey.pem",
          "644 root /etc/portico/tls/cacert.pem",
          "755 root /usr/lib/portico/node",
          "755 root /usr/lib/portico/portico.mjs",
          "700 root /var/lib/portico/deployment",
        ]),
      );
      for (const text of [said, deployment.synthesized]) {
        expect(text).not.toMatch(/PRIVATE KEY|never to be copied/);
      }
      expect(deployment.state).not.toContain("never to be copied");
    },
    FIVE_MINUTES,
  );

  test("responds as service 5.1 says, from another network", async () => expectFrontEnd(), 60_000);

  test("has the application's settings edited in place", async () => {
    expect(await host.must("cat /srv/sync/conf/web_settings.py")).toMatch(
      /^SECRET_KEY = "never to be copied"\n[^]*FILE_SERVER_ROOT = ["']https:\/\/203\.0\.113\.10\/synchttp["'][^]*\nDATABASES = /,
    );
    expect(await host.must("cat /srv/sync/conf/network.conf")).toContain(
      "SERVICE_URL = https://203.0.113.10/sync\n",
    );
    expect(await host.must("stat -c %a /srv/sync/conf/web_settings.py")).toBe("600\n");
  });

  test(
    "exposes 22, 80 and 443 and nothing else",
    async () => {
      const scan = async (target: string): Promise<number[]> => {
        const command = `nmap -Pn -n -p- -T5 --min-rate 10000 --max-retries 3 -oG - ${target}`;
        const said = await outside.must(command, { timeoutSeconds: 120 });
        return [...said.matchAll(/(\d+)\/open\//g)].map(([, port]) => Number(port));
      };
      expect(await Promise.all([host.address, `-6 ${host.address6}`].map(scan))).toEqual([
        [22, 80, 443],
        [22, 80, 443],
      ]);
    },
    FIVE_MINUTES,
  );

  test(
    "comes back after a reboot",
    async () => {
      await host.reboot();
      await expectFrontEnd();
    },
    FIVE_MINUTES,
  );

  test(
    "another route changes the config and nothing else",
    async () => {
      const health = `curl -sk https://${host.address}/health`;
      expect(await outside.must(health)).not.toBe("ok\n");
      deployment.synthesize({ health: true });
      const text = await apply();
      expect(changes(text)).toEqual([
        "terraform_data.files_Activation must be replaced",
        "terraform_data.files_Proxy_Config must be replaced",
      ]);
      expect(steps(text)).toEqual(["systemctl reload portico.service"]);
      expect(await outside.must(health)).toBe("ok\n");
    },
    FIVE_MINUTES,
  );

  test(
    "another runtime takes over under load, and no request is lost",
    async () => {
      await deployment.buildRuntime("0.1.1");
      deployment.synthesize({ health: true });
      const load = await startLoad(host);
      expect(steps(await apply())).toEqual(["portico upgrade (portico.service)"]);
      const report = await load.stop();
      expect(await outside.must(`curl -sI http://${host.address}/ -H 'Host: other.example'`)).toContain(
        "Server: portico/0.1.1\r\n",
      );
      expect(report.failures).toEqual([]);
      expect(report.transfers.filter(({ failure }) => failure !== undefined)).toEqual([]);
      for (const count of Object.values(report.responses)) expect(count).toBeGreaterThan(20);
      expect(report.transfers.length).toBeGreaterThan(5);
    },
    FIVE_MINUTES,
  );

  test(
    "a config that does not serve is rolled back, and the apply fails with the reason",
    async () => {
      deployment.synthesize({ health: true, brokenUpstream: true, probeSeconds: 3 });
      const { code, stdout, stderr } = await deployment.tryApply();
      expect(code).toBe(1);
      expect(stderr).toContain("remote-exec provisioner error");
      expect(stdout).toMatch(
        /application over https[^]*\[activation\.unexpected-response\][^]*received: .*502/,
      );
      expect(stdout).toContain("not activated; the host is as it was before");
      await expectFrontEnd();
      expect(await host.must("cat /etc/portico/portico.json")).not.toContain("8999");

      // A second attempt fails in the same way: what was uploaded is still there.
      expect((await deployment.tryApply()).stdout).toContain("[activation.unexpected-response]");
      deployment.synthesize({ health: true });
      await apply();
      await expectFrontEnd();
    },
    FIVE_MINUTES,
  );

  test(
    "a server with another key gets nothing",
    async () => {
      const other = await host.must("cat /etc/ssh/ssh_host_rsa_key.pub");
      const wrong = deployment.by({ privateKeyFile: host.sshKey, hostKey: other, connectTimeoutSeconds: 5 });
      wrong.synthesize({ health: false });
      const { code, stderr } = await wrong.tryApply();
      expect(code).toBe(1);
      expect(stderr).toMatch(/knownhosts: key mismatch/);
      // State remembers how to log in on destroy; an apply fixes it.
      deployment.synthesize({ health: true });
      expect(changes(await apply())).toContain(
        "terraform_data.files_Host_Deployment will be updated in-place",
      );
    },
    FIVE_MINUTES,
  );

  test(
    "another stack is refused; it can take the host over, here as a user with sudo, with keys of an agent, through a bastion; then the first one's destroy touches nothing",
    async () => {
      second = new Deployment(host, await ssh());
      await second.buildRuntime();
      second.synthesize({ construct: "others" });
      second.init();
      const ours = await deployed();
      const refused = await second.tryApply();
      expect([refused.code, refused.stdout]).toEqual([
        1,
        expect.stringMatching(
          /this host already has another deployment, that of portico\/files\/Host \[activation\.other-deployment\][^]*takeOver/,
        ),
      ]);
      expect(await deployed()).toBe(ours);
      await asDeployUser(async (login, env) => {
        second = second.by({ ...login, takeOver: true, whenDestroyed: "purge" });
        second.synthesize({ construct: "others" });
        const intruder = await Intruder.letIn(host);
        await second.apply(env);
        expect(await intruder.end()).toEqual({ changed: "", taken: false });
      });
      await expectFrontEnd();
      const theirs = await deployed();
      const { code, stdout } = await deployment.terraform("destroy -auto-approve -no-color");
      expect([code, stdout]).toEqual([
        0,
        expect.stringContaining("nothing was removed: this host has the deployment of portico/others/Host"),
      ]);
      expect(await deployed()).toBe(theirs);
      await expectFrontEnd();
    },
    FIVE_MINUTES,
  );

  test(
    "a construct that was renamed is another one, unless its identity was moved in state",
    async () => {
      second = second.by(await ssh());
      second.synthesize({ construct: "moved" });
      await second.moveIdentity();
      await second.apply();
      expect(await second.planned()).toEqual([]);
      second.synthesize({ construct: "renamed" });
      const before = await deployed();
      const { code, stdout } = await second.tryApply();
      expect([code, stdout]).toEqual([1, expect.stringContaining("[activation.other-deployment]")]);
      expect(await deployed()).toBe(before);
    },
    FIVE_MINUTES,
  );

  test(
    "a host that was reinstalled or restored gets everything again",
    async () => {
      await host.must(`/var/lib/portico/deployment/command deactivate --purge
        rm -rf /var/lib/portico /root/.portico /etc/ssh/ssh_host_*
        ssh-keygen -A && systemctl restart ssh`);
      before = await hostTree(host);
      second = second.by(await ssh());
      second.synthesize({ construct: "moved" });
      await second.applyAgain();
      await expectFrontEnd();

      const places = "etc/portico etc/systemd/system usr/lib/portico usr/share/portico var/lib/portico";
      await host.must(`tar -C / -cpf /opt/backup.tar ${places}`);
      second.synthesize({ construct: "moved", health: true });
      await second.apply();
      await host.must(
        "tar -C / -xpf /opt/backup.tar && rm /opt/backup.tar && systemctl daemon-reload && systemctl restart portico.service",
      );
      const health = `curl -sk https://${host.address}/health`;
      expect(await outside.must(health)).not.toBe("ok\n");
      await second.applyAgain();
      expect(await outside.must(health)).toBe("ok\n");
      expect(await second.planned()).toEqual([]);

      // One file is changed, and the host has none of the others.
      await host.must(
        "/var/lib/portico/deployment/command deactivate --purge; rm -rf /var/lib/portico /root/.portico",
      );
      second.synthesize({ construct: "moved" });
      expect((await second.tryApply()).stdout).toMatch(
        /\/incoming\/\S+: does not exist, but .*\[delivery.reinstalled-host\]\n.* fix: .* -replace=\S*Host_Staging_/,
      );
      await second.applyAgain();
      await expectFrontEnd();
    },
    FIVE_MINUTES,
  );

  test(
    "a destroy leaves the host as it was",
    async () => {
      const { code, stdout, stderr } = await second.terraform("destroy -auto-approve -no-color");
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout).toContain("the deployment is gone");
      expect(differences(before, await hostTree(host))).toEqual([]);
      expect(await host.must("ss -Hltn '! src 127.0.0.0/8' | awk '{print $4}' | sort")).toBe(
        "0.0.0.0:22\n[::]:22\n",
      );
      expect(await host.must("nft list ruleset")).toBe("");
      expect(await host.must("systemctl --failed --plain --no-legend")).toBe("");
    },
    FIVE_MINUTES,
  );

  /** Another way in, for as long as an agent runs that has the key: as a user with sudo, through a bastion. */
  async function asDeployUser(
    during: (login: SshDeliveryOptions, env: NodeJS.ProcessEnv) => Promise<void>,
  ): Promise<void> {
    await host.must(`useradd --create-home --shell /bin/sh deploy
      echo 'deploy ALL=(root) NOPASSWD: ALL' > /etc/sudoers.d/deploy
      install -d -m 0700 -o deploy /home/deploy/.ssh
      install -m 0600 -o deploy /root/.ssh/authorized_keys /home/deploy/.ssh/
      install -d -m 0700 -o deploy /opt/admin-scripts`);
    const socket = `${host.folder}/agent`;
    const agent = outside.start(`exec ssh-agent -D -a ${socket}`);
    try {
      await outside.must(
        `while [ ! -S ${socket} ]; do sleep 0.1; done; SSH_AUTH_SOCK=${socket} ssh-add -q ${host.sshKey}`,
      );
      const hostKey = await host.must("cat /etc/ssh/ssh_host_ecdsa_key.pub");
      // The host is its own bastion: what goes through it arrives from 127.0.0.1.
      const login = {
        user: "deploy",
        sudo: true,
        address: "127.0.0.1",
        hostKey,
        scriptPath: "/opt/admin-scripts/%RAND%.sh",
        bastion: { address: host.address, user: "deploy", hostKey },
      };
      await during(login, { SSH_AUTH_SOCK: socket });
      expect(
        await host.must("journalctl -u ssh --grep 'Accepted publickey for deploy from 127.0.0.1' | wc -l"),
      ).not.toBe("0\n");
      expect(await host.must("find /opt/admin-scripts -type f ! -empty")).toBe("");
    } finally {
      agent.kill();
    }
  }

  /** Every row of service 5.1 in TLS mode, and who responds, by both addresses. */
  async function expectFrontEnd(): Promise<void> {
    for (const address of [host.address, `[${host.address6}]`]) {
      const head = async (url: string, ...more: string[]): Promise<string> =>
        (await outside.must(`curl -sSkI --max-time 10 ${more.join(" ")} '${url}'`)).replaceAll("\r", "");
      const page = await head(`http://${address}/`, "-H 'Host: other.example'");
      expect(page).toMatch(/^HTTP\/1\.1 200 OK\nServer: portico\/[\d.]+\n[^]*Content-Type: text\/html/);
      const media = await head(`https://${address}/syncmedia/img/icon.svg`);
      for (const line of [
        /^HTTP\/2 200/,
        /^server: portico$/m,
        /^content-type: image\/svg\+xml$/m,
        /^content-length: 42$/m,
        /^last-modified: /m,
        /^etag: /m,
        /^accept-ranges: bytes$/m,
      ]) {
        expect(media).toMatch(line);
      }
      const redirect = await head(`http://${address}/sync/`);
      expect(redirect).toMatch(/^HTTP\/1\.1 301 /);
      expect(redirect).toContain(`\nLocation: https://${address}/sync/\n`);
      expect(redirect).toContain("\nServer: portico\n");
      const application = await head(`https://${address}/sync/`);
      expect(application).toMatch(/^HTTP\/2 302/);
      expect(application).toContain(`\nlocation: https://${address}/sync/accounts/login/?next=/sync/\n`);
      expect(await head(`https://${address}/syncdav/`)).toMatch(/^HTTP\/2 207/);
      expect(await outside.must(`curl -sk 'https://${address}/synchttp/small'`)).toBe("small\n");
    }
  }
});

/** What activation did to services, as it told Terraform. */
function steps(text: string): string[] {
  return [...text.matchAll(/\(remote-exec\): ((?:systemctl|portico) .*)/g)].map(([, step]) => step!);
}

/** What an apply says that it is going to change, with the numbers in the ends of addresses taken off. */
function changes(text: string): string[] {
  return [...text.matchAll(/^ *# (\S+?)(?:_[0-9A-F]{8})? ((?:must|will) be .*)$/gm)]
    .map(([, address, what]) => `${address} ${what}`)
    .sort();
}
