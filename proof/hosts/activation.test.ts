import path from "node:path";
import { fileSyncTrees } from "../../src/applications/index.js";
import { MEDIA_FILES } from "../../demo/media.js";
import type { DeploymentInput } from "../../src/model/index.js";
import {
  ActivationHost,
  CONFIG,
  DAEMONS,
  everything,
  FILE_SERVER_CONF,
  FIREWALLED,
  type HostedFiles,
  SECRET,
  settings,
  SETTINGS,
  STORE,
  TLS,
  values,
} from "./activationHost.js";
import { releaseOfSuite, type Result, type TestHost } from "./harness/index.js";
import { eventually } from "../../testkit/waiting.js";

/** Activation on a real Debian: what systemd really does, in which order, and what comes back from a failure. */
let site: ActivationHost;
let host: TestHost;

beforeAll(async () => {
  site = await ActivationHost.boot("activation", releaseOfSuite("trixie"));
  host = site.host;
}, 600_000);
afterAll(() => site?.remove());

const deploy: ActivationHost["deploy"] = (...args) => site.deploy(...args);
const observed = <T>(act: () => Promise<T>): Promise<[T, string[]]> => site.observed(act);
const traces = (): Promise<string> => site.traces();
const active = (...units: string[]): Promise<string> => site.active(...units);
const seenOutside = (url: string): Promise<string> => site.seenOutside(url);

test("the first activation: everything runs, starts with the host, and responds from outside", async () => {
  const dry = await deploy(site.base, {}, "--dry-run");
  expect([dry.code, dry.stderr]).toEqual([0, ""]);
  expect(await traces()).toBe(site.untouched);
  const [result, done] = await observed(() => deploy(site.base));
  expect([result.stderr, result.code]).toEqual(["", 0]);
  expect(result.stdout).toMatch(
    /systemctl daemon-reload\n[^]*start portico\.socket\n[^]*\nPASS[^]*\nactivated\n$/,
  );
  expect(result.stdout).not.toContain("FAIL");
  expect(done).toEqual(["start portico.socket", "start portico"]);
  expect(await active(...everything)).toBe("active active active active active");
  expect(await host.must("systemctl is-enabled portico.service portico.socket")).toBe("enabled\nenabled\n");
  expect(await host.must(`stat -c '%a %U' ${TLS}/privkey.pem ${STORE}`)).toBe("600 root\n700 root\n");
  expect(await seenOutside(`https://${host.address}/sync/`)).toBe("302");
  const [again, nothing] = await observed(() => deploy(site.base));
  expect(again.stdout).toMatch(/nothing to do: the host is as deployed\n$/);
  expect([again.code, nothing]).toEqual([0, []]);
});

describe("only what a change concerns is touched, in the order of service 2.6", () => {
  const dropIn: HostedFiles = {
    "/etc/systemd/system/sync-web.service.d/portico.conf": {
      role: "unit",
      content: "[Service]\nEnvironment=BY=portico\n",
    },
  };
  const renamed = () => settings(values("files.example.org", { fileServerPort: 8083 }));
  // Each case goes on from the one before.
  test.each<[string, () => [HostedFiles, Partial<DeploymentInput>], string[]]>([
    ["a route", () => [site.changedConfig(), {}], ["reload portico"]],
    [
      "settings, for the first time",
      () => [site.changedConfig(), { settings: settings(values(host.address)) }],
      ["stop web", "stop files", "start files", "start web"],
    ],
    [
      "the port in the file server's config",
      () => [site.changedConfig(), { settings: settings(values(host.address, { fileServerPort: 8083 })) }],
      ["stop files", "start files"],
    ],
    [
      "the domain",
      () => [site.renamedConfig(), { settings: renamed() }],
      ["stop web", "restart files", "start web", "reload portico"],
    ],
    [
      "the start command of the web application",
      () => [{ ...site.renamedConfig(), ...dropIn }, { settings: renamed() }],
      ["stop web", "start web"],
    ],
    [
      "the runtime",
      () => [site.withRuntime({ ...site.renamedConfig(), ...dropIn }), { settings: renamed() }],
      [],
    ],
    [
      "the proxy's unit",
      () => [
        site.withUnit(site.withRuntime({ ...site.renamedConfig(), ...dropIn })),
        { settings: renamed() },
      ],
      ["restart portico"],
    ],
    [
      "a listener",
      () => [
        site.withListener(site.withUnit(site.withRuntime({ ...site.renamedConfig(), ...dropIn }))),
        { settings: renamed() },
      ],
      ["stop portico", "restart portico.socket", "start portico"],
    ],
    [
      "all of it, back",
      () => [site.base, {}],
      [
        ...["stop web", "start web", "stop portico", "restart portico.socket", "start portico"],
        // Then the settings are undone, which no longer are in the deployment.
        ...["stop web", "stop files", "start files", "start web"],
      ],
    ],
  ])("%s", async (_what, deployment, expected) => {
    const [files, more] = deployment();
    const [result, done] = await observed(() => deploy(files, more));
    expect([result.stderr, result.code]).toEqual(["", 0]);
    expect(done).toEqual(expected);
    expect(await active(...everything)).toBe("active active active active active");
  });

  test("the secret key was copied nowhere", async () => {
    const found = await host.must(`grep -rl ${SECRET} /etc /opt/sync/conf /var/lib /usr/lib/portico; true`);
    expect(found.trim().split("\n")).toEqual([SETTINGS.webApplication]);
  });

  test("a daemon that was stopped by hand runs again", async () => {
    await host.must(`systemctl stop ${DAEMONS.fileServer}`);
    const [result, done] = await observed(() => deploy(site.base));
    expect([result.code, done]).toEqual([0, ["start files"]]);
  });
});

describe("a failure restores the last good state, running", () => {
  const broken: HostedFiles = {
    "/etc/systemd/system/sync-web.service.d/portico.conf": {
      role: "unit",
      content: "[Service]\nExecStartPre=/bin/sh -c 'echo no luck today; exit 3'\n",
    },
  };
  const elsewhere = (): HostedFiles => {
    const text = site.base[CONFIG]!.content.toString().replace("127.0.0.1:8000", "127.0.0.1:8001");
    return { ...site.base, [CONFIG]: { role: "config", content: text } };
  };

  test.each<[string, () => [HostedFiles, Partial<DeploymentInput>], RegExp, string[]]>([
    [
      "the config leads nowhere",
      () => [elsewhere(), { probe: { timeoutSeconds: 2 } }],
      /^HEAD https:[^\n]*application over https: not as expected \[activation\.unexpected-response\]\n[^]*the web application daemon and the proxy do not work together/m,
      ["reload portico", "reload portico"],
    ],
    [
      "a daemon does not start",
      () => [{ ...site.changedConfig(), ...broken }, {}],
      /^systemctl start sync-web\.service: failed with status 1: [^]*no luck today/m,
      ["stop web", "start web failed", "start web", "reload portico"],
    ],
    [
      "the proxy does not start",
      () => [
        {
          ...site.base,
          "/etc/systemd/system/portico.service.d/no.conf": {
            role: "unit",
            content: "[Service]\nExecStartPre=/bin/false\nRestart=no\n",
          },
        },
        {},
      ],
      /^systemctl restart portico\.service: failed/m,
      ["restart portico", "start portico failed", "start portico"],
    ],
  ])("%s", async (_what, deployment, reason, jobs) => {
    const before = await traces();
    const [files, more] = deployment();
    const [result, done] = await observed(() => deploy(files, more));
    expect(result.code).toBe(1);
    expect(result.stderr).toMatch(reason);
    expect(result.stderr).toMatch(/not activated; the host is as it was before\n$/);
    expect(done).toEqual(jobs);
    expect(await traces()).toBe(before);
    expect(await active(...everything)).toBe("active active active active active");
    expect(await seenOutside(`https://${host.address}/sync/`)).toBe("302");
  });

  test("nothing is begun with a unit that systemd refuses", async () => {
    const before = await traces();
    const unit = { role: "unit", content: "[Service]\nType=nonsense\n" } as const;
    const files = { ...site.base, "/etc/systemd/system/portico.service": unit };
    const [result, done] = await observed(() => deploy(files));
    expect([result.code, done]).toEqual([1, []]);
    expect(result.stderr).toMatch(/activation\.bad-unit[^]*nothing was changed\n$/);
    expect(await traces()).toBe(before);
    expect((await deploy(site.base)).stdout).toMatch(/nothing to do/);
  });
});

/** Lets an activation be met while it waits for a daemon. */
const slowStart: HostedFiles = {
  "/etc/systemd/system/sync-web.service.d/slow.conf": {
    role: "unit",
    content: "[Service]\nExecStartPre=/bin/sh -c 'while test -e /run/slow; do sleep 0.2; done'\n",
  },
};

test("a firewall is added, changed and removed with the deployment; one that locks out is refused", async () => {
  const walled = (ports: readonly number[]): [HostedFiles, Partial<DeploymentInput>] => [
    site.withFirewall(site.base, ports),
    FIREWALLED,
  ];
  const session = "SSH_CONNECTION='203.0.113.1 50000 203.0.113.10 22'";
  const before = await traces();
  const refused = await deploy(...walled([80, 443]), "", session);
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("activation.locked-out")]);
  const nonsense = walled([22, 80, 443]);
  nonsense[0]["/etc/portico/firewall.nft"] = { role: "firewall", content: "tcp dport 22 accept\n" };
  expect((await deploy(...nonsense, "", session)).stderr).toMatch(
    /nft --check [^:]+: failed with status 1: /,
  );
  expect(await traces()).toBe(before);

  const [first, jobs] = await observed(() => deploy(...walled([22, 80, 443]), "", session));
  expect([first.stderr, first.code, jobs]).toEqual(["", 0, ["start portico-firewall"]]);
  expect(await seenOutside(`https://${host.address}/sync/`)).toBe("302");
  const [second, reloads] = await observed(() => deploy(...walled([22, 80]), "", session));
  expect([second.stderr, second.code, reloads]).toEqual(["", 0, ["reload portico-firewall"]]);
  expect(await seenOutside(`https://${host.address}/sync/`)).toBe("000");
  const [third, stops] = await observed(() => deploy(site.base));
  expect([third.stderr, third.code, stops]).toEqual(["", 0, ["stop portico-firewall"]]);
  expect(await host.must("nft list tables")).not.toContain("portico");
  expect(await traces()).toBe(before);
});

describe("whatever happens to its caller, an activation continues to its end:", () => {
  const slow = (): Promise<Result> => deploy({ ...site.changedConfig(), ...slowStart }, {}, "", CALLER);
  /** The shell's pid is that of the command that is asked. */
  const CALLER = "echo $$ > /run/caller; exec";
  const worker = async (): Promise<string> =>
    (
      await host.must("systemctl list-units --plain --no-legend 'portico-activation-*' | cut -d ' ' -f 1")
    ).trim();
  const ended = (): Promise<void> =>
    eventually(async () => (await worker()) === "", undefined, { everyMs: 50 });

  // By kill -9, Ctrl-C and others in turn: cutOff.test.ts.
  test("a lost connection", async () => {
    await host.must("touch /run/slow");
    const asked = slow();
    await eventually(async () => (await active("sync-web.service")) === "activating", undefined, {
      everyMs: 100,
    });
    await host.must("kill -HUP $(cat /run/caller)");
    expect((await asked).code).not.toBe(0);
    expect(await worker()).toMatch(/^portico-activation-/);
    // A second one says for whom it waits.
    const second = deploy({ ...site.changedConfig(), ...slowStart });
    await eventually(async () => (await host.run("pgrep -f '^flock .*--wait'")).code === 0, undefined, {
      everyMs: 100,
    });
    await host.must("rm /run/slow");
    const { code, stdout, stderr } = await second;
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(/^waiting for the activation that process \d+ has been running since /);
    expect(stdout).toMatch(/nothing to do: the host is as deployed\n$/);
    await ended();
    expect(await active(...everything)).toBe("active active active active active");
    expect(await host.must(`cat ${CONFIG}`)).toContain("4321");
    // How the first one ended is told by whoever comes next.
    const third = await deploy(site.base);
    expect(third.code).toBe(0);
    expect(third.stderr).toMatch(
      /^complete output of the activate that began at \S+:\n[^]*activated\nit ended with status 0\n$/,
    );
  });

  test("killed again and again within seconds, it finishes all the same", async () => {
    await host.must("touch /run/slow");
    const asked = slow();
    await eventually(async () => (await active("sync-web.service")) === "activating", undefined, {
      everyMs: 100,
    });
    const unit = await worker();
    // What systemd asks of the kernel; a container may not lower it.
    expect(await host.must(`systemctl show -P OOMScoreAdjust ${unit}`)).toBe("-900\n");
    // systemd's usual limit is five starts in ten seconds.
    await host.must(`rm /run/slow
      for kill in 1 2 3 4 5 6 7; do
        until pid=$(systemctl show -P MainPID ${unit}) && [ "$pid" -ne 0 ]; do sleep 0.05; done
        kill -9 "$pid"
        while [ "$(systemctl show -P MainPID ${unit})" = "$pid" ]; do sleep 0.05; done
      done`);
    const result = await asked;
    expect([result.stderr, result.code]).toEqual(["", 0]);
    expect(result.stdout).toMatch(/\nthe activation of \S+ was cut off: rolling back\n[^]*\nactivated\n$/);
    await ended();
    expect(await active(...everything)).toBe("active active active active active");
    expect(await host.must("systemctl --failed --plain --no-legend")).toBe("");
    expect((await deploy(site.base)).code).toBe(0);
  });

  test("a host that shuts down rolls back, and boots as it was before", async () => {
    const before = await traces();
    await host.must("touch /run/slow");
    const asked = slow().catch(() => undefined);
    await eventually(async () => (await active("sync-web.service")) === "activating", undefined, {
      everyMs: 100,
    });
    await host.reboot();
    await asked;
    expect(await traces()).toBe(before);
    expect(await active(...everything)).toBe("active active active active active");
    const result = await deploy(site.base);
    expect([result.stderr, result.code]).toEqual(["", 0]);
  });
});

describe("an apply on a proxy that crashes and restarts again and again", () => {
  test.each([1, 2])("succeeds, time %i", async (time) => {
    expect((await deploy(site.base)).code).toBe(0);
    // By turns it starts, and waits to be started.
    await host.write(CONFIG, "{}");
    await host.must(
      `printf '[Unit]\\nStartLimitIntervalSec=0\\n[Service]\\nRestart=always\\nRestartSec=${time % 2 === 0 ? "300ms" : "1s"}\\n' > /run/loop.conf
      install -D /run/loop.conf /run/systemd/system/portico.service.d/loop.conf
      systemctl daemon-reload; systemctl restart --no-block portico.service; sleep ${1 + time / 5}`,
    );
    const result = await deploy(site.changedConfig());
    expect([result.stderr, result.code]).toEqual(["", 0]);
    expect(await active(...everything)).toBe("active active active active active");
    await host.must("rm -r /run/systemd/system/portico.service.d; systemctl daemon-reload");
  });
});

test("media that others cannot read are fixed on request, but nothing that a link leads to", async () => {
  expect((await deploy(site.base)).code).toBe(0);
  const media = "/opt/sync/media";
  const modes = async (): Promise<string> =>
    (await host.must(`stat -c %a ${CLOSED.join(" ")} /root/private`)).trim().replaceAll("\n", " ");
  await host.must(
    `chown -R 1234:1234 ${media} && chmod 600 ${CLOSED[0]} && chmod 710 ${CLOSED[1]} &&
     echo private > /root/private && chmod 600 /root/private && ln -s /root/private ${media}/link`,
  );
  const image = `https://${host.address}/syncmedia/${MEDIA_FILES.image}`;
  expect(await seenOutside(image)).toBe("403");
  const [fixed, done] = await observed(() =>
    deploy(site.base, { trees: fileSyncTrees({ directory: media }, true) }),
  );
  expect([fixed.stderr, fixed.code, done]).toEqual(["", 0, []]);
  expect([await modes(), await seenOutside(image)]).toEqual(["604 715 600", "200"]);
  expect((await deploy(site.base, { trees: fileSyncTrees({ directory: media }, true) })).stdout).toMatch(
    /nothing to do/,
  );
  // That it is no longer asked for takes nothing back; that there is no deployment does.
  expect((await deploy(site.base)).code).toBe(0);
  expect(await modes()).toBe("604 715 600");
});

/** A file and a directory of the media that a test closes. */
const CLOSED = [`/opt/sync/media/${MEDIA_FILES.image}`, path.dirname(`/opt/sync/media/${MEDIA_FILES.image}`)];

test("after a deactivation the host is as it was found", async () => {
  await deploy(site.base, { settings: settings(values(host.address)) });
  expect(await host.must(`cat ${SETTINGS.fileServer}`)).not.toBe(FILE_SERVER_CONF);
  await host.must(`echo '# by hand' >> ${SETTINGS.fileServer}`);
  const [result, done] = await observed(() => host.run("/root/node /root/portico.mjs deactivate --purge"));
  expect([result.stderr, result.code]).toEqual(["", 0]);
  // By item: ours go, and every other line is as its owner last wrote it.
  expect(result.stdout).toContain(`${SETTINGS.fileServer}: Portico's changes are undone`);
  expect(await host.must(`cat ${SETTINGS.fileServer}`)).toBe(`${FILE_SERVER_CONF}# by hand\n`);
  expect(done.filter((job) => job.includes("portico"))).toEqual(["stop portico", "stop portico.socket"]);
  expect(await host.must(`stat -c %a ${CLOSED.join(" ")}`)).toBe("600\n710\n");
  await host.must(`chmod 644 ${CLOSED[0]} && chmod 755 ${CLOSED[1]}`);
  await host.write(SETTINGS.fileServer, FILE_SERVER_CONF);
  expect(await traces()).toBe(site.untouched);
  expect(
    await host.must(
      "ls -d /var/lib/portico/[!i]* /var/log/portico /var/log/private/portico 2>/dev/null; true",
    ),
  ).toBe("");
  expect(await active(...Object.values(DAEMONS))).toBe("active active active");
  expect((await host.run("systemctl --failed --plain --no-legend")).stdout).toBe("");
  expect((await host.run("/root/node /root/portico.mjs deactivate")).stdout).toBe(
    "nothing is deployed here\n",
  );
});

test("a first activation that fails leaves nothing behind", async () => {
  const text = site.base[CONFIG]!.content.toString().replace("127.0.0.1:8000", "127.0.0.1:8001");
  const files: HostedFiles = { ...site.base, [CONFIG]: { role: "config", content: text } };
  const [result, done] = await observed(() => deploy(files, { probe: { timeoutSeconds: 2 } }));
  expect(result.code).toBe(1);
  expect(result.stderr).toMatch(/not activated; the host is as it was before\n$/);
  expect(done).toEqual(["start portico.socket", "start portico", "stop portico", "stop portico.socket"]);
  expect(await traces()).toBe(site.untouched);
  const units = await host.run(
    "systemctl list-unit-files --no-legend 'portico*'; systemctl --failed --no-legend",
  );
  expect(units.stdout).toBe("");
});
