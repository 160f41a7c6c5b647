import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { buildSync } from "esbuild";
import { buildBundle } from "../../build/bundle.js";
import { createMedia } from "../../demo/media.js";
import { privateKey, selfSignedCertificate } from "../../demo/tlsResources.js";
import type { DeploymentInput, FileRole, ProxyConfigInput } from "../../src/model/index.js";
import {
  applicationSettingsValues,
  firewallDropIn,
  firewallUnit,
  proxyServiceUnit,
  proxySocketUnit,
  type ProxyUnitsInput,
  renderFirewall,
  renderUnit,
} from "../../src/render/index.js";
import { siteConfig } from "../cli/siteConfig.js";
import { bootHost, type Result, type TestHost } from "./harness/index.js";

/** Activation on a real Debian: what systemd really does, in which order, and what comes back from a failure. */
const STORE = "/var/lib/portico/deployment";
const NODE = "/usr/lib/portico/node";
const RUNTIME = "/usr/lib/portico/portico.mjs";
const CONFIG = "/etc/portico/portico.json";
const TLS = "/etc/portico/tls";
const DAEMONS = {
  webApplication: "sync-web.service",
  fileServer: "sync-files.service",
  webdav: "sync-dav.service",
};
const SETTINGS = {
  networkDaemon: "/opt/sync/conf/network.conf",
  webApplication: "/opt/sync/conf/web_settings.py",
  fileServer: "/opt/sync/conf/fileserver.conf",
};
const SECRET = "this-is-the-secret-key-of-the-application";

interface HostedFile {
  readonly content: string | Buffer;
  readonly mode?: "0600" | "0644" | "0755";
  readonly role: FileRole;
}
type HostedFiles = Record<string, HostedFile>;

let host: TestHost;
let folder: string;
let base: HostedFiles;
let untouched: string;

beforeAll(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "portico-activation-host-"));
  host = await bootHost({ name: "activation" });
  await installApplication();
  base = await baseFiles();
  await host.copyIn(process.execPath, "/root/node", "0755");
  await host.copyIn(path.join(folder, "portico.mjs"), "/root/portico.mjs", "0755");
  untouched = await traces();
}, 600_000);

afterAll(async () => {
  await host?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** The application as somebody else installed it: daemons with units, media, settings. */
async function installApplication(): Promise<void> {
  const daemon = path.join(folder, "daemon.cjs");
  const contents = `
    import { createFileServer } from ${JSON.stringify(path.resolve("demo/upstreams/fileServer.ts"))};
    import { createWebUi } from ${JSON.stringify(path.resolve("demo/upstreams/webUi.ts"))};
    const [kind, port] = process.argv.slice(2);
    const paths = { web: "/sync", fileServer: "/synchttp", media: "/syncmedia", webdav: "/syncdav" };
    const server = kind === "web" ? Promise.resolve(createWebUi(paths)) : createFileServer("/var/lib/sync-" + kind);
    server.then((s) => s.listen(Number(port), "127.0.0.1"));`;
  buildSync({
    stdin: { contents, resolveDir: path.resolve(".") },
    outfile: daemon,
    bundle: true,
    platform: "node",
    target: "node20",
    logLevel: "error",
  });
  await host.copyIn(process.execPath, "/opt/sync/node", "0755");
  await host.copyIn(daemon, "/opt/sync/daemon.cjs");
  for (const [unit, kind, port] of [
    ["sync-web.service", "web", 8000],
    ["sync-files.service", "files", 8082],
    ["sync-dav.service", "dav", 8080],
  ]) {
    const text = `[Unit]\nDescription=${kind} of the application\n[Service]\nExecStart=/opt/sync/node /opt/sync/daemon.cjs ${kind} ${port}\n[Install]\nWantedBy=multi-user.target\n`;
    await host.write(`/etc/systemd/system/${unit}`, text);
  }
  await createMedia(path.join(host.root, "opt/sync/media"));
  await host.write(SETTINGS.networkDaemon, "[General]\nID = 1\n");
  await host.write(SETTINGS.fileServer, "[fileserver]\nport = 8082\n");
  await host.write(SETTINGS.webApplication, `SECRET_KEY = "${SECRET}"\n\nDATABASES = {}\n`, "0640");
  await host.must(`systemctl daemon-reload && systemctl enable --now ${Object.values(DAEMONS).join(" ")}`);
}

const unitsInput = (): ProxyUnitsInput => ({
  nodePath: NODE,
  runtime: RUNTIME,
  config: CONFIG,
  logDirectory: "/var/log/portico",
  listeners: listeners(),
  tlsFiles: [`${TLS}/privkey.pem`, `${TLS}/cacert.pem`],
  servedDirectories: ["/usr/share/portico/default", "/opt/sync/media"],
  stopTimeoutSeconds: 20,
  openFilesMax: 4096,
});

const listeners = () => [
  { address: "0.0.0.0", port: 80 },
  { address: "0.0.0.0", port: 443 },
];

const proxyConfig = (): ProxyConfigInput => siteConfig({ mode: "tls", host: host.address });

async function baseFiles(): Promise<HostedFiles> {
  const { file } = await buildBundle(path.join(folder, "portico.mjs"));
  const key = privateKey({ algorithm: "RSA", rsa_bits: 2048 })["private_key_pem"]!;
  const { cert_pem } = await selfSignedCertificate({
    private_key_pem: key,
    validity_period_hours: 24 * 365,
    ip_addresses: [host.address],
    dns_names: ["files.example.org"],
    subject: { common_name: "files.example.org" },
  });
  return {
    [NODE]: { role: "node", mode: "0755", content: readFileSync(process.execPath) },
    [RUNTIME]: { role: "runtime", mode: "0755", content: readFileSync(file) },
    [CONFIG]: { role: "config", content: JSON.stringify(proxyConfig()) },
    [`${TLS}/privkey.pem`]: { role: "tls", mode: "0600", content: key },
    [`${TLS}/cacert.pem`]: { role: "tls", content: cert_pem! },
    "/usr/share/portico/default/index.html": { role: "page", content: "<title>It works</title>" },
    "/etc/systemd/system/portico.service": {
      role: "unit",
      content: renderUnit(proxyServiceUnit(unitsInput())),
    },
    "/etc/systemd/system/portico.socket": {
      role: "unit",
      content: renderUnit(proxySocketUnit(unitsInput())),
    },
  };
}

function values(serverName: string, more: { fileServerPort?: number } = {}) {
  return {
    ...applicationSettingsValues({
      origins: [{ scheme: "https", host: serverName, port: 443 }],
      pathPrefix: "sync",
      enableSettingsViaWeb: false,
      fileServerHost: "127.0.0.1",
      fileServerPort: 8082,
    }),
    ...more,
  };
}

const settings = (of: ReturnType<typeof values>): DeploymentInput["settings"] => ({
  values: of,
  files: SETTINGS,
  apply: true,
});

/** Uploads what the host does not have and activates it. */
async function deploy(
  files: HostedFiles,
  more: Partial<DeploymentInput> = {},
  options = "",
  prefix = "",
): Promise<Result> {
  const hashed = Object.keys(files)
    .sort()
    .map((name) => {
      const { content, mode = "0644", role } = files[name]!;
      return { path: name, mode, role, content, sha256: createHash("sha256").update(content).digest("hex") };
    });
  const incoming = path.join(host.root, STORE, "incoming");
  mkdirSync(incoming, { recursive: true, mode: 0o700 });
  for (const { sha256, content } of hashed) {
    if (!existsSync(path.join(host.root, STORE, "blobs", sha256)))
      writeFileSync(path.join(incoming, sha256), content);
  }
  const deployment: DeploymentInput = {
    version: 1,
    config: CONFIG,
    files: hashed.map(({ path: at, mode, sha256, role }) => ({ path: at, mode, sha256, role })),
    services: { proxy: { service: "portico.service", socket: "portico.socket" }, ...DAEMONS },
    probe: { timeoutSeconds: 10 },
    ...more,
  };
  writeFileSync(path.join(incoming, "deployment.json"), JSON.stringify(deployment));
  return host.run(`${prefix} /root/node /root/portico.mjs activate --incoming ${STORE}/incoming ${options}`, {
    timeoutSeconds: 120,
  });
}

/** What systemd did meanwhile, in order: `stop web`, `start web`, `reload portico`. */
async function observed<T>(act: () => Promise<T>): Promise<[T, string[]]> {
  const cursor = (await host.must("journalctl --sync; journalctl -n 0 --show-cursor -q"))
    .trim()
    .replace("-- cursor: ", "");
  const result = await act();
  const json = await host.must(`journalctl --sync; journalctl -q -o json --after-cursor='${cursor}' _PID=1`);
  const jobs = json
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Record<string, string>)
    .filter(({ UNIT, JOB_TYPE }) => JOB_TYPE !== undefined && /^(?:sync|portico)/.test(UNIT ?? ""))
    .filter(({ JOB_RESULT }) => JOB_RESULT === "done" || JOB_RESULT === "failed")
    .map(({ UNIT, JOB_TYPE, JOB_RESULT }) => {
      const verb = `${JOB_TYPE} ${UNIT!.replace(/\.service$/, "").replace("sync-", "")}`;
      return JOB_RESULT === "done" ? verb : `${verb} failed`;
    });
  // The second half of a restart is told as a start.
  const isHalf = (job: string, i: number): boolean =>
    job.replace(/ failed$/, "") === (jobs[i - 1] ?? "").replace(/^restart/, "start") &&
    /^restart/.test(jobs[i - 1]!);
  const done = jobs.filter((job, i) => !isHalf(job, i) || job.endsWith("failed"));
  return [result, done];
}

/** Everything that a deployment may touch, to be compared; without logs and backups of settings. */
async function traces(): Promise<string> {
  const found = "find /etc /opt/sync/conf /srv /usr/lib/portico /usr/share/portico ! -name '*.portico-20*'";
  const names = await host.run(`${found} -printf '%M %U:%G %p %l\\n' | sort -k 3`);
  const contents = await host.run(`${found} -type f -print0 | sort -z | xargs -0 md5sum`);
  return names.stdout + contents.stdout;
}

const active = async (...units: string[]): Promise<string> =>
  (await host.run(`systemctl is-active ${units.join(" ")}`)).stdout.trim().replaceAll("\n", " ");

const everything = ["portico.service", "portico.socket", ...Object.values(DAEMONS)];

/** What a client outside sees. */
async function seenOutside(url: string): Promise<string> {
  const outside = await host.outside();
  return (await outside.run(`curl -sk -o /dev/null -w '%{http_code}' -m 5 ${url}`)).stdout;
}

test("the first activation: everything runs, starts with the host, and answers outside", async () => {
  const dry = await deploy(base, {}, "--dry-run");
  expect([dry.code, dry.stderr]).toEqual([0, ""]);
  expect(await traces()).toBe(untouched);
  const [result, done] = await observed(() => deploy(base));
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
  const [again, nothing] = await observed(() => deploy(base));
  expect(again.stdout).toMatch(/nothing to do: the host is as deployed\n$/);
  expect([again.code, nothing]).toEqual([0, []]);
}, 180_000);

describe("only what a change concerns is touched, in the order of spec 3", () => {
  const dropIn: HostedFiles = {
    "/etc/systemd/system/sync-web.service.d/portico.conf": {
      role: "unit",
      content: "[Service]\nEnvironment=BY=portico\n",
    },
  };
  // Each case goes on from the one before.
  test.each<[string, () => [HostedFiles, Partial<DeploymentInput>], string[]]>([
    ["a route", () => [changedConfig(), {}], ["reload portico"]],
    [
      "settings, for the first time",
      () => [changedConfig(), { settings: settings(values(host.address)) }],
      ["stop web", "stop files", "start files", "start web"],
    ],
    [
      "the port in the file server's config",
      () => [changedConfig(), { settings: settings(values(host.address, { fileServerPort: 8083 })) }],
      ["stop files", "start files"],
    ],
    [
      "settings, back",
      () => [changedConfig(), { settings: settings(values(host.address)) }],
      ["stop files", "start files"],
    ],
    [
      "the domain",
      () => [renamedConfig(), { settings: settings(values("files.example.org")) }],
      ["stop web", "restart files", "start web", "reload portico"],
    ],
    [
      "the start command of the web application",
      () => [{ ...renamedConfig(), ...dropIn }, { settings: settings(values("files.example.org")) }],
      ["stop web", "start web"],
    ],
    [
      "the runtime",
      () => [
        withRuntime({ ...renamedConfig(), ...dropIn }),
        { settings: settings(values("files.example.org")) },
      ],
      [],
    ],
    [
      "the proxy's unit",
      () => [
        withUnit(withRuntime({ ...renamedConfig(), ...dropIn })),
        { settings: settings(values("files.example.org")) },
      ],
      ["restart portico"],
    ],
    [
      "a listener",
      () => [
        withListener(withUnit(withRuntime({ ...renamedConfig(), ...dropIn }))),
        { settings: settings(values("files.example.org")) },
      ],
      ["stop portico", "restart portico.socket", "start portico"],
    ],
    [
      "all of it, back",
      () => [base, {}],
      ["stop web", "start web", "stop portico", "restart portico.socket", "start portico"],
    ],
  ])(
    "%s",
    async (_what, deployment, expected) => {
      const [files, more] = deployment();
      const [result, done] = await observed(() => deploy(files, more));
      expect([result.stderr, result.code]).toEqual(["", 0]);
      expect(done).toEqual(expected);
      expect(await active(...everything)).toBe("active active active active active");
    },
    120_000,
  );

  test("a new runtime relieves the old one while it serves", async () => {
    const master = (): Promise<string> => host.must("systemctl show -P MainPID portico.service");
    const before = await master();
    const [result, done] = await observed(() => deploy(withRuntime(base)));
    expect([result.stderr, result.code, done]).toEqual(["", 0, []]);
    expect(await master()).not.toBe(before);
    expect((await deploy(base)).code).toBe(0);
  }, 60_000);

  test("the secret key was copied nowhere", async () => {
    const found = await host.must(`grep -rl ${SECRET} /etc /opt/sync/conf /var/lib /usr/lib/portico; true`);
    expect(
      found.split("\n").filter((name) => name !== "" && !name.startsWith(SETTINGS.webApplication)),
    ).toEqual([]);
  });

  test("a daemon that was stopped by hand runs again", async () => {
    await host.must(`systemctl stop ${DAEMONS.fileServer}`);
    const [result, done] = await observed(() => deploy(base));
    expect([result.code, done]).toEqual([0, ["start files"]]);
  });
});

function changedConfig(): HostedFiles {
  const config = proxyConfig();
  return {
    ...base,
    [CONFIG]: { role: "config", content: JSON.stringify({ ...config, timeouts: { keepAliveMs: 4321 } }) },
  };
}

function renamedConfig(): HostedFiles {
  const config = siteConfig({ mode: "tls", host: "files.example.org" });
  return { ...base, [CONFIG]: { role: "config", content: JSON.stringify(config) } };
}

function withRuntime(files: HostedFiles): HostedFiles {
  const content = Buffer.concat([base[RUNTIME]!.content as Buffer, Buffer.from("// another release\n")]);
  return { ...files, [RUNTIME]: { ...base[RUNTIME]!, content } };
}

function withUnit(files: HostedFiles): HostedFiles {
  const content = renderUnit(proxyServiceUnit({ ...unitsInput(), openFilesMax: 8192 }));
  return { ...files, "/etc/systemd/system/portico.service": { role: "unit", content } };
}

function withListener(files: HostedFiles): HostedFiles {
  const config = JSON.parse(files[CONFIG]!.content.toString()) as ProxyConfigInput;
  const listener = { name: "more", address: "0.0.0.0", port: 8888, protocol: "http" as const };
  const [first, ...rest] = config.virtualServers;
  const more = {
    ...config,
    listeners: [...config.listeners, listener],
    virtualServers: [{ ...first!, listeners: [...first!.listeners, "more"] }, ...rest],
  };
  const socket = proxySocketUnit({ ...unitsInput(), listeners: [...listeners(), listener] });
  return {
    ...files,
    [CONFIG]: { role: "config", content: JSON.stringify(more) },
    "/etc/systemd/system/portico.socket": { role: "unit", content: renderUnit(socket) },
  };
}

describe("a failure brings the last good state back, running", () => {
  const broken: HostedFiles = {
    "/etc/systemd/system/sync-web.service.d/portico.conf": {
      role: "unit",
      content: "[Service]\nExecStartPre=/bin/sh -c 'echo no luck today; exit 3'\n",
    },
  };
  const elsewhere = (): HostedFiles => {
    const text = base[CONFIG]!.content.toString().replace("127.0.0.1:8000", "127.0.0.1:8001");
    return { ...base, [CONFIG]: { role: "config", content: text } };
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
      () => [{ ...changedConfig(), ...broken }, {}],
      /^systemctl start sync-web\.service: failed with status 1: [^]*no luck today/m,
      ["stop web", "start web failed", "start web", "reload portico"],
    ],
    [
      "the proxy does not start",
      () => [
        {
          ...base,
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
  ])(
    "%s",
    async (_what, deployment, reason, jobs) => {
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
      expect((await deploy(base)).stdout).toMatch(/nothing to do/);
    },
    120_000,
  );

  test.each<[string, () => [HostedFiles, Partial<DeploymentInput>], RegExp]>([
    [
      "a unit that systemd refuses",
      () => [
        {
          ...base,
          "/etc/systemd/system/portico.service": { role: "unit", content: "[Service]\nType=nonsense\n" },
        },
        {},
      ],
      /activation\.bad-unit/,
    ],
    [
      "a daemon that is not there",
      () => [
        base,
        {
          services: {
            proxy: { service: "portico.service", socket: "portico.socket" },
            webdav: "nobody.service",
          },
        },
      ],
      /services\.webdav: is no unit of this host \[activation\.unknown-unit\]/,
    ],
    [
      "settings that cannot be edited",
      () => [
        base,
        {
          settings: {
            ...settings(values(host.address))!,
            files: { ...SETTINGS, fileServer: "/opt/sync/conf/none" },
          },
        },
      ],
      /files\.unreadable/,
    ],
  ])(
    "nothing is begun with %s",
    async (_what, deployment, reason) => {
      const before = await traces();
      const [files, more] = deployment();
      const [result, done] = await observed(() => deploy(files, more));
      expect([result.code, done]).toEqual([1, []]);
      expect(result.stderr).toMatch(reason);
      expect(result.stderr).toMatch(/nothing was changed\n$/);
      expect(await traces()).toBe(before);
    },
    60_000,
  );

  test("power is lost in the middle; the next activation mends it", async () => {
    const before = await traces();
    await host.must("touch /run/slow");
    const cutOff = deploy({ ...changedConfig(), ...slowStart }).catch(() => undefined);
    const journal = path.join(host.root, STORE, "journal.json");
    await waitFor(async () => existsSync(journal) && (await active("sync-web.service")) === "activating");
    await host.powerCut();
    await cutOff;
    expect(existsSync(journal)).toBe(true);
    const result = await deploy(base);
    expect([result.stderr, result.code]).toEqual(["", 0]);
    expect(result.stdout).toMatch(/^the activation of \S+ was cut off: rolling back\n/);
    expect(await traces()).toBe(before);
    expect(await active(...everything)).toBe("active active active active active");
  }, 180_000);
});

/** Lets an activation be met while it waits for a daemon; not after the next boot. */
const slowStart: HostedFiles = {
  "/etc/systemd/system/sync-web.service.d/slow.conf": {
    role: "unit",
    content: "[Service]\nExecStartPre=/bin/sh -c 'test ! -e /run/slow || sleep 60'\n",
  },
};

async function waitFor(ask: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await ask()); tries++) {
    if (tries > 300) throw new Error("it never came");
    await new Promise((wake) => setTimeout(wake, 50));
  }
}

test("a firewall comes, changes and goes with the deployment; one that locks out is refused", async () => {
  const walled = (ports: readonly number[]): [HostedFiles, Partial<DeploymentInput>] => [
    {
      ...base,
      "/etc/portico/firewall.nft": {
        role: "firewall",
        content: renderFirewall({ ports, loopbackPorts: [8000], allowed: [], dhcpClient: false }),
      },
      "/etc/systemd/system/portico-firewall.service": {
        role: "unit",
        content: renderUnit(firewallUnit("/usr/sbin/nft", "/etc/portico/firewall.nft")),
      },
      "/etc/systemd/system/nftables.service.d/portico.conf": {
        role: "firewall",
        content: renderUnit(firewallDropIn()),
      },
    },
    {
      services: {
        proxy: { service: "portico.service", socket: "portico.socket" },
        ...DAEMONS,
        firewall: "portico-firewall.service",
      },
    },
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
  const [third, stops] = await observed(() => deploy(base));
  expect([third.stderr, third.code, stops]).toEqual(["", 0, ["stop portico-firewall"]]);
  expect(await host.must("nft list tables")).not.toContain("portico");
  expect(await traces()).toBe(before);
}, 120_000);

test("killed between two services, all of them run again after the next activation", async () => {
  const before = await traces();
  await host.must("touch /run/slow");
  const cutOff = deploy({ ...changedConfig(), ...slowStart }, {}, "", "echo $$ > /run/activation.pid; exec");
  await waitFor(async () => (await active("sync-web.service")) === "activating");
  await host.must("kill -9 $(cat /run/activation.pid); rm /run/slow");
  expect((await cutOff).code).not.toBe(0);
  const result = await deploy(base);
  expect([result.stderr, result.code]).toEqual(["", 0]);
  expect(result.stdout).toMatch(/^the activation of \S+ was cut off: rolling back\n/);
  expect(await traces()).toBe(before);
  expect(await active(...everything)).toBe("active active active active active");
}, 120_000);

test("deactivated, the host is as it was found", async () => {
  await deploy(base, { settings: settings(values(host.address)) });
  await host.must(`echo '# by hand' >> ${SETTINGS.fileServer}`);
  const [result, done] = await observed(() => host.run("/root/node /root/portico.mjs deactivate --purge"));
  expect([result.stderr, result.code]).toEqual(["", 0]);
  expect(result.stdout).toContain(`${SETTINGS.fileServer}: was changed by somebody else and stays as it is`);
  expect(done.filter((job) => job.includes("portico"))).toEqual(["stop portico", "stop portico.socket"]);
  await host.write(SETTINGS.fileServer, "[fileserver]\nport = 8082\n");
  expect(await traces()).toBe(untouched);
  expect(
    await host.must("ls -d /var/lib/portico /var/log/portico /var/log/private/portico 2>/dev/null; true"),
  ).toBe("");
  expect(await active(...Object.values(DAEMONS))).toBe("active active active");
  expect((await host.run("systemctl --failed --plain --no-legend")).stdout).toBe("");
  expect((await host.run("/root/node /root/portico.mjs deactivate")).stdout).toBe(
    "nothing is deployed here\n",
  );
}, 120_000);

test("a first activation that fails leaves nothing behind", async () => {
  const text = base[CONFIG]!.content.toString().replace("127.0.0.1:8000", "127.0.0.1:8001");
  const files: HostedFiles = { ...base, [CONFIG]: { role: "config", content: text } };
  const [result, done] = await observed(() => deploy(files, { probe: { timeoutSeconds: 2 } }));
  expect(result.code).toBe(1);
  expect(result.stderr).toMatch(/not activated; the host is as it was before\n$/);
  expect(done).toEqual(["start portico.socket", "start portico", "stop portico", "stop portico.socket"]);
  expect(await traces()).toBe(untouched);
  const units = await host.run(
    "systemctl list-unit-files --no-legend 'portico*'; systemctl --failed --no-legend",
  );
  expect(units.stdout).toBe("");
}, 120_000);
