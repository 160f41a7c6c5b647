import { terraformIsHere, Workspace } from "../terraform/workspace.js";
import { Deployment } from "./deploy/deployment.js";
import { bootHost, type TestHost } from "./harness/index.js";

/** Ordinary applications on a real host: each apply asks them, and the host goes back where they do not answer. */
const run = terraformIsHere() ? describe : describe.skip;

run.each([
  ["a WebFrontEnd", false, "https", "application application", "sync-files"],
  ["a plain ReverseProxy with a Unix socket", true, "http", "site app", "sync-socket"],
])("%s", (_what, health, scheme, name, unit) => {
  let host: TestHost;
  let deployment: Deployment;

  beforeAll(async () => {
    host = await bootHost({ name: "web" });
    const ssh = {
      privateKeyFile: host.sshKey,
      hostKey: await host.must("cat /etc/ssh/ssh_host_ecdsa_key.pub"),
    };
    deployment = new Deployment(host, ssh, new Workspace(), "webApp.ts");
    await deployment.installApplication();
    const script =
      'require("http").createServer((q, r) => r.end("ok")).listen("/run/sync-socket/web.sock")'.replaceAll(
        '"',
        '\\"',
      );
    await host.write(
      "/etc/systemd/system/sync-socket.service",
      "[Service]\nUser=daemon\nGroup=www-data\nUMask=0117\nRuntimeDirectory=sync-socket\n" +
        `ExecStart=/srv/sync/bin/interpreter -e "${script}"\n`,
    );
    await host.must("systemctl start sync-socket");
    await deployment.buildRuntime();
    deployment.synthesize({ health });
    deployment.init();
  }, 600_000);

  afterAll(async () => {
    deployment?.remove();
    await host?.stop();
  });

  const status = async (): Promise<string> =>
    (await host.outside()).must(`curl -sko /dev/null -w '%{http_code}' ${scheme}://${host.address}/`);

  test("is asked, fails where its upstream answers 502, and comes back", async () => {
    expect(await deployment.apply()).toContain(`PASS  ${name}`);
    const before = await status();
    expect(before).not.toMatch(/^50/);
    deployment.synthesize({ health, brokenUpstream: true, probeSeconds: 2 });
    const { code, stdout, stderr } = await deployment.terraform("apply -input=false -auto-approve -no-color");
    expect([code, stdout + stderr]).toEqual([1, expect.stringContaining("activation.unexpected-response")]);
    expect(stdout + stderr).toContain("the upstream http://127.0.0.1:8999 refuses connections");
    expect(await status()).toBe(before);
  });

  test("has rows in `portico doctor` and `portico check --live`", async () => {
    const portico = "/var/lib/portico/deployment/command";
    expect(await host.must(`${portico} check --live`)).toContain(`PASS  ${name}`);
    const doctor = await host.run(`${portico} doctor`);
    expect(doctor.stdout).toContain(`ok     Expected response: ${name}`);
    expect(doctor.stdout).not.toMatch(/media|application path/);
    if (health) {
      await host.must("chmod 600 /run/sync-socket/web.sock");
      expect((await host.run(`${portico} doctor`)).stdout).toContain(
        "let the proxy's user write to the socket",
      );
    }
    await host.must(`systemctl stop ${unit}`);
    const { code, stdout } = await host.run(`${portico} doctor`);
    expect([code, stdout]).toEqual([1, expect.stringContaining(`FAIL   Expected response: ${name}`)]);
  });
});
