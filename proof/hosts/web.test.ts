import { terraformIsHere, Workspace } from "../terraform/workspace.js";
import { Deployment } from "./deploy/deployment.js";
import { eventually } from "../../testkit/waiting.js";
import { bootHost, type TestHost } from "./harness/index.js";

/** Ordinary applications on a real host: each apply asks them, and the host goes back where they do not respond. */
const run = terraformIsHere() ? describe : describe.skip;

run.each([
  ["a FrontEnd", false, "https", "application web", "sync-files"],
  ["a plain ReverseProxy with a Unix socket", true, "http", "site app", "sync-socket"],
])("%s", (_what, health, scheme, name, unit) => {
  let host: TestHost;
  let deployment: Deployment;

  beforeAll(async () => {
    host = await bootHost({ name: "web" });
    const ssh = {
      privateKeyFile: host.sshKey,
      hostKey: await host.must("cat /etc/ssh/ssh_host_ecdsa_key.pub"),
      whenDestroyed: "keep",
    } as const;
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

  test("is asked, fails where its upstream responds with 502, and comes back", async () => {
    expect(await deployment.apply()).toContain(`PASS  ${name}`);
    const before = await status();
    expect(before).not.toMatch(/^50/);
    deployment.synthesize({ health, brokenUpstream: true, probeSeconds: 2 });
    const { code, stdout, stderr } = await deployment.terraform("apply -input=false -auto-approve -no-color");
    expect([code, stdout + stderr]).toEqual([1, expect.stringContaining("activation.unexpected-response")]);
    expect(stdout + stderr).toContain("(ECONNREFUSED at http://127.0.0.1:8999)");
    expect(await status()).toBe(before);
  });

  // The same for both.
  if (!health)
    test("is closed by command, over a crash and an apply, and while a command runs", async () => {
      const portico = "/var/lib/portico/deployment/command";
      const before = await status();
      expect(await host.must(`${portico} maintenance on`)).toMatch(/^every site is in maintenance/);
      expect(await status()).toBe("503");
      await host.must("systemctl kill --signal=KILL --kill-whom=main portico.service");
      const started = async (): Promise<boolean> => (await status()) !== "000";
      await eventually(started, "for systemd to start it again", { everyMs: 100 });
      expect(await status()).toBe("503");
      // The response of the upstream that is configured now is not asked for, so it is no reason to roll back.
      deployment.synthesize({ health, brokenUpstream: true, probeSeconds: 2 });
      expect(await deployment.apply()).toContain("is in maintenance");
      expect(await host.must(`${portico} maintenance`)).toMatch(/^SITE[^]*\nall /);
      deployment.synthesize({ health });
      await deployment.apply();
      expect(await host.must(`${portico} maintenance off`)).toBe("maintenance has ended\n");
      expect(await status()).toBe(before);
      const asks = `curl -sko /dev/null -w '%{http_code} ' ${scheme}://${host.address}/`;
      const crash = "systemctl kill --signal=KILL --kill-whom=main portico.service; sleep 4";
      const during = await host.must(
        `${portico} quiesce -- sh -c "${asks} -X POST; ${crash}; ${asks} -X POST; ${asks}"`,
      );
      expect(during).toBe(`503 503 ${before} `);
      expect(await host.must(`${asks} -X POST`)).not.toBe("503 ");
    });

  if (!health)
    test("is left to itself by a destroy that cannot reach it", async () => {
      const before = await status();
      await host.must("systemctl stop ssh.service ssh.socket 2> /dev/null; systemctl stop ssh.service");
      expect((await deployment.terraform("destroy -auto-approve -no-color")).code).toBe(0);
      expect(await status()).toBe(before);
    });

  test("has rows in `portico doctor` and `portico check --live`", async () => {
    const portico = "/var/lib/portico/deployment/command";
    expect(await host.must(`${portico} check --live`)).toContain(`PASS  ${name}`);
    const doctor = await host.run(`${portico} doctor`);
    expect(doctor.stdout).toContain(`ok     Expected response: ${name}`);
    expect(doctor.stdout).not.toMatch(/media|application path/);
    if (health) {
      // The proxy's connection of the last request would do for the next one.
      await host.must("chmod 600 /run/sync-socket/web.sock; sleep 3");
      expect((await host.run(`${portico} doctor`)).stdout).toMatch(
        /let the proxy's user write to the socket/i,
      );
    }
    await host.must(`systemctl stop ${unit}`);
    const { code, stdout } = await host.run(`${portico} doctor`);
    expect([code, stdout]).toEqual([1, expect.stringContaining(`FAIL   Expected response: ${name}`)]);
  });
});
