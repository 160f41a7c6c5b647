import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer as createHttpServer, type Server } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Deactivated } from "../../src/host/activation/deactivate.js";
import type { SeenDrift } from "../../src/host/activation/drift.js";
import type { ExpectedProbe } from "../../src/host/diagnosis/expected/expectedResponses.js";
import type { CheckedResponse } from "../../src/host/diagnosis/expected/liveCheck.js";
import type { ProbeOutcome } from "../../src/host/diagnosis/expected/probe.js";
import type { DiagnosisRow } from "../../src/host/diagnosis/verdict.js";
import { daemonsOf } from "../../src/applications/index.js";
import type { DeploymentInput, FileRole, ProxyConfigInput } from "../../src/model/index.js";
import { wantedFiles } from "../applicationSettings/oracle.js";
import type { LoadedState } from "../../src/runtime/load/loadConfig.js";
import {
  type ControlOutcome,
  type ControlRequest,
  ControlServer,
} from "../../src/runtime/supervisor/control/control.js";
import { issue } from "../../testkit/certificates.js";
import { fileSyncTrees } from "../../src/applications/index.js";
import { siteConfig, siteExpect } from "../../testkit/siteConfig.js";
import { response, asExpected, configOf, siteRows, subjectOf } from "../diagnosis/site.js";
import { CONFIG, KEY, PROXY, sha256, type SiteFiles, siteFiles } from "./site.js";
import { INCOMING, type Printed, WholeHost } from "./wholeHost.js";
import { nextEvent } from "../../testkit/waiting.js";

/** Activation of a whole host with its units, by programs that stand for those of systemd. */

const UNITS = "/etc/systemd/system";
const STORE = "/var/lib/portico/deployment";
const RULES = "/etc/portico/firewall.nft";
const RUNTIME = "/usr/lib/portico/portico.mjs";
const TABLE = "table inet portico {\n\tchain input {\n\t\ttcp dport 22 accept\n\t}\n}";
const DAEMONS = { webApplication: "web.service" };
const SERVICES = { proxy: PROXY, daemons: daemonsOf(DAEMONS), firewall: "firewall.service" };
const UNPROBED: Partial<DeploymentInput> = { services: SERVICES, probe: { enabled: false } };

let host: WholeHost;
let one: SiteFiles;
let two: SiteFiles;
beforeAll(async () => {
  host = await WholeHost.start();
  one = await filesOf("1");
  two = await filesOf("22");
});
afterAll(() => host.stop());
beforeEach(() => {
  host.reset();
  host.state("web.service", "active");
  host.write("/run/units/web.service.links", "enabled");
});

function filesOf(version: string): Promise<SiteFiles> {
  const unit = (content: string) => ({ role: "unit", content }) as const;
  return siteFiles(version, {
    [`${UNITS}/portico.service`]: unit("[Service]\n[Install]\nWantedBy=multi-user.target\n"),
    [`${UNITS}/portico.socket`]: unit("[Socket]\n[Install]\nWantedBy=sockets.target\n"),
    [`${UNITS}/firewall.service`]: unit("[Service]\n[Install]\nWantedBy=sysinit.target\n"),
    [`${UNITS}/web.service.d/portico.conf`]: unit("[Service]\n"),
    [RULES]: { role: "firewall", content: `${TABLE}\n` },
  });
}

// A finding, a problem or a short list stands on one line.
expect.addSnapshotSerializer({
  test: (value: unknown) =>
    ["[object Object]", "[object Array]"].includes(Object.prototype.toString.call(value)) &&
    Object.values(value as object).every((one) => ["string", "number", "boolean"].includes(typeof one)) &&
    JSON.stringify(value).length <= 240,
  print: (value: unknown) => JSON.stringify(value),
});

/** What no test can know is left out. */
const plain = (value: unknown): unknown =>
  JSON.parse(
    (JSON.stringify(value) ?? "null")
      .replaceAll(/[0-9a-f]{64}/g, "HASH")
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME")
      .replaceAll(process.execPath, "NODE"),
  );

const below = (directory: string): string[] =>
  host.below(directory).filter((name) => !name.startsWith("blobs/"));

async function activated(files: SiteFiles, more: Partial<DeploymentInput> = UNPROBED): Promise<void> {
  host.deliver(files, more);
  const { problems, reason, threw } = await host.activate();
  expect({ problems, reason, threw }).toEqual({});
  host.write("/run/rules-inet-portico", `${TABLE}\n`);
  host.calls();
}

async function drift(): Promise<unknown> {
  const { value, threw } = await host.call<SeenDrift>("drift");
  expect(threw).toBeUndefined();
  return plain(value.drift);
}

/** The files of a deployment, in the order in which they are written and removed. */
const WRITTEN = [
  "/etc/portico/firewall.nft",
  "/etc/portico/portico.json",
  "/etc/portico/tls/cacert.pem",
  "/etc/portico/tls/privkey.pem",
  "/etc/systemd/system/firewall.service",
  "/etc/systemd/system/portico.service",
  "/etc/systemd/system/portico.socket",
  "/etc/systemd/system/web.service.d/portico.conf",
  "/usr/lib/portico/portico.mjs",
  "/usr/share/portico/default/index.html",
  "/etc/portico/deployment.json",
];
/** What a first activation says that it does. */
const FIRST_LINES = [
  "will restart web.service, which interrupts its work: /etc/systemd/system/web.service.d/portico.conf will change",
  "will start firewall.service: it does not run",
  "will start portico.service: it does not run",
  "will start portico.socket: it does not run",
  "systemctl stop web.service",
  "write files",
  ...WRITTEN.map((file) => `  ${file}: new`),
  "systemctl daemon-reload",
  "systemctl enable firewall.service",
  "systemctl enable portico.service",
  "systemctl enable portico.socket",
  "systemctl start firewall.service",
  "systemctl start web.service",
  "systemctl start portico.socket",
  "systemctl start portico.service",
];
/** What its removal says. */
const REMOVAL_LINES = [
  "systemctl stop portico.service",
  "systemctl disable portico.service",
  "systemctl stop portico.socket",
  "systemctl disable portico.socket",
  "systemctl stop firewall.service",
  "systemctl disable firewall.service",
  "systemctl stop web.service",
  "write files",
  ...WRITTEN.map((file) => `  ${file}: removed`),
  "systemctl daemon-reload",
  "systemctl start web.service",
];
/** What is asked before anything is done. */
const CHECKS = [
  "systemd-analyze verify --man=no firewall.service portico.service portico.socket web.service",
  "nft --check",
];
/** The calls that such lines stand for, each made while the journal is there. */
const callsOf = (lines: readonly string[]): string[] =>
  lines.flatMap((line) => {
    const [, command, unit = ""] = /^systemctl (\S+) ?(.*)$/.exec(line) ?? [];
    return command === undefined ? [] : [`${command} ${unit} (journal)`];
  });

test("a first activation, a second one that has nothing to do, and a deactivation", async () => {
  host.deliver(one, UNPROBED);
  const planned = await host.activate({ dryRun: true });
  expect([host.calls(), host.exists(CONFIG), host.exists(STORE)]).toEqual([CHECKS, false, true]);
  expect(below(STORE)).toEqual(["blobs"]);
  expect(planned.lines).toEqual([]);
  const first = await host.activate();
  expect(planned.value.plan).toEqual(first.value.plan);
  expect(first.lines).toEqual(first.value.plan);
  expect(first.value.responses).toEqual([]);
  expect(first.lines).toEqual(FIRST_LINES);
  expect(host.calls()).toEqual([...CHECKS, ...callsOf(FIRST_LINES)]);
  expect(host.below(UNITS)).toMatchInlineSnapshot(`
   [
     "firewall.service",
     "multi-user.target.wants",
     "multi-user.target.wants/firewall.service",
     "multi-user.target.wants/portico.service",
     "multi-user.target.wants/portico.socket",
     "portico.service",
     "portico.socket",
     "web.service.d",
     "web.service.d/portico.conf",
   ]
  `);
  expect(below(STORE)).toMatchInlineSnapshot(`["blobs","command","logs.json","programs","state.json"]`);
  expect(plain(host.read(`${STORE}/programs`))).toMatchInlineSnapshot(`
   "NODE
   /usr/lib/portico/portico.mjs
   "
  `);
  expect(statSync(host.at(`${STORE}/command`)).mode & 0o7777).toBe(0o700);
  expect(host.below(INCOMING)).toEqual(["deployment.json"]);
  host.write("/run/rules-inet-portico", `${TABLE}\n`);
  host.deliver(one, UNPROBED);
  const second = await host.activate();
  expect([second.value.plan, second.lines]).toEqual([[], []]);
  expect(host.below(INCOMING)).toEqual(["deployment.json"]);
  expect(host.calls()).toEqual(CHECKS);
  const gone = await host.call("deactivate");
  expect(gone).toEqual({ lines: REMOVAL_LINES, value: { problems: [], removed: "all" } });
  expect(host.calls()).toEqual(callsOf(REMOVAL_LINES));
  expect([host.below(UNITS), host.below("/var/lib/portico"), host.below("/etc/portico")])
    .toMatchInlineSnapshot(`
[
  [],
  ["incoming","incoming/one","incoming/one/deployment.json"],
  [],
]
`);
  expect(await host.call("deactivate")).toEqual({ lines: [], value: { removed: "nothing", problems: [] } });
});

test("a service that does not start: the host is as it was before, with the words of the unit", async () => {
  host.write("/run/units/portico.service.start", "echo 'Job failed.' >&2; exit 1");
  host.write("/run/says/journalctl", "no such thing\n");
  host.deliver(one, UNPROBED);
  const { lines, ...rest } = plain(await host.activate()) as { lines: string[] };
  expect(lines.slice(0, FIRST_LINES.length)).toEqual(FIRST_LINES);
  const after = lines.slice(FIRST_LINES.length);
  expect({ lines: after.slice(0, 2), ...rest }).toMatchInlineSnapshot(`
{
  "lines": [
    "failed: systemctl start portico.service: failed with status 1: Job failed.
portico.service said:
  | no such thing [activation.command-failed]
    fix:      Resolve the command's error, which the message gives.
    see:      cdktf-portico/docs/errors.md#activationcommand-failed",
    "rolling back to what was there before",
  ],
  "notRestored": [],
  "reason": [
    {"code":"activation.command-failed","path":"systemctl start portico.service","message":"failed with status 1: Job failed.\\nportico.service said:\\n  | no such thing","fix":"Resolve the command's error, which the message gives."},
  ],
}
`);
  // The unit that did not start need not stop.
  expect(after.slice(2)).toEqual(REMOVAL_LINES.slice(1));
  expect(host.calls()).toEqual([...CHECKS, ...callsOf(lines)]);
  expect([host.below("/etc/portico"), host.below(UNITS), below(STORE)]).toEqual([
    [],
    [],
    ["blobs", "command", "logs.json", "programs"],
  ]);
});

test("interrupted between two steps: the next is not begun", async () => {
  // The signal is there before the end of the command is.
  host.write("/run/units/web.service.start", "kill -TERM $PPID\nsleep 0.5");
  host.deliver(one, UNPROBED);
  const { lines, reason } = await host.activate();
  expect(reason).toMatchObject([{ code: "activation.interrupted", message: "interrupted by SIGTERM" }]);
  const last = lines.indexOf("systemctl start web.service");
  expect(lines.slice(last + 1, last + 3)).toEqual([
    expect.stringMatching(/^failed: interrupted by SIGTERM /),
    "rolling back to what was there before",
  ]);
});

test("a later one goes back to the last good state", async () => {
  await activated(one);
  host.write("/run/units/portico.service.restart", "exit 3");
  host.write("/run/units/portico.service.reload", "echo 'cannot reload' >&2; exit 1");
  host.deliver({ ...one, [CONFIG]: two[CONFIG]! }, UNPROBED);
  const { lines, reason, notRestored } = await host.activate();
  expect({ lines, reason, notRestored }).toMatchInlineSnapshot(`
{
  "lines": [
    "will reload portico.service, which interrupts nothing: /etc/portico/portico.json will change",
    "write files",
    "  /etc/portico/portico.json: content",
    "  /etc/portico/deployment.json: content",
    "systemctl reload portico.service",
    "failed: systemctl reload portico.service: failed with status 1: cannot reload [activation.command-failed]
    fix:      Resolve the command's error, which the message gives.
    see:      cdktf-portico/docs/errors.md#activationcommand-failed",
    "rolling back to the last good state",
    "write files",
    "  /etc/portico/portico.json: restored",
    "  /etc/portico/deployment.json: restored",
    "systemctl reload portico.service",
  ],
  "notRestored": [
    {"code":"activation.command-failed","path":"systemctl restart portico.service","message":"failed with status 3: ","fix":"Resolve the command's error, which the message gives."},
  ],
  "reason": [
    {"code":"activation.command-failed","path":"systemctl reload portico.service","message":"failed with status 1: cannot reload","fix":"Resolve the command's error, which the message gives."},
  ],
}
`);
  expect(host.calls()).toMatchInlineSnapshot(
    `["systemd-analyze verify --man=no firewall.service portico.service portico.socket web.service","nft --check","reload portico.service (journal)","reload portico.service (journal)","restart portico.service (journal)"]`,
  );
  expect(host.read(CONFIG)).toBe(one[CONFIG]!.content);
  expect(host.read(`${STORE}/programs`)).toContain(`\n${RUNTIME}\n`);
  expect(host.exists(`${STORE}/journal.json`)).toBe(false);
  rmSync(host.at("/run/units/portico.service.restart"));
  // A proxy that died instead of reloading is started with the new state.
  host.write("/run/units/portico.service.reload", "echo failed > /run/units/portico.service; exit 1");
  const again = await host.activate();
  expect([again.lines, again.reason]).toMatchInlineSnapshot(`
[
  ["will reload portico.service, which interrupts nothing: /etc/portico/portico.json will change","write files","  /etc/portico/portico.json: content","  /etc/portico/deployment.json: content","systemctl reload portico.service"],
  undefined,
]
`);
  expect(host.calls()).toMatchInlineSnapshot(
    `["systemd-analyze verify --man=no firewall.service portico.service portico.socket web.service","nft --check","reload portico.service (journal)","restart portico.service (journal)"]`,
  );
});

test("what goes wrong after the host serves does not undo it; what systemd does not know any more goes all the same", async () => {
  const network = "/etc/systemd/network/10-a.network";
  const files: SiteFiles = { ...one, [network]: { role: "network", content: "[Match]\n" } };
  host.state("systemd-networkd.service", "active");
  host.write("/run/units/portico.service.start", `rm -r ${INCOMING}`);
  host.deliver(files, UNPROBED);
  const { lines, reason } = await host.activate();
  expect([reason, lines.at(-1)]).toEqual([
    undefined,
    `cleanup failed: ENOENT: no such file or directory, scandir '${INCOMING}'`,
  ]);
  expect(host.calls().filter((call) => call.startsWith("networkctl"))).toEqual(["networkctl reload"]);
  host.state("systemd-networkd.service", "inactive");
  host.write("/run/units/firewall.service.disable", "echo 'firewall.service does not exist' >&2; exit 1");
  host.write("/run/units/portico.service.disable", "echo 'access denied'; exit 1");
  host.says("journalctl", "left out", 1);
  mkdirSync(host.at(`${UNITS}/sysinit.target.wants`));
  symlinkSync("../firewall.service", host.at(`${UNITS}/sysinit.target.wants/firewall.service`));
  host.write(`${UNITS}/other.target.wants/firewall.service`, "not a link");
  expect((await host.call<Deactivated>("deactivate")).value.problems).toEqual([
    {
      code: "activation.command-failed",
      path: "systemctl disable portico.service",
      message: "failed with status 1: access denied",
      fix: "Resolve the command's error, which the message gives.",
    },
  ]);
  expect(host.calls().filter((call) => call.startsWith("networkctl"))).toEqual([]);
  expect(host.below(UNITS)).toEqual([
    "multi-user.target.wants",
    "multi-user.target.wants/portico.service",
    "other.target.wants",
    "other.target.wants/firewall.service",
    "sysinit.target.wants",
  ]);
});

test("a systemd that does not respond", async () => {
  host.says("show", "no bus");
  host.deliver(one, UNPROBED);
  expect((await host.activate()).problems).toMatchObject([
    { code: "activation.command-failed", path: "systemctl show", message: "failed with status 1: no bus" },
  ]);
});

describe("doctor's view of the host:", () => {
  test("rules without a unit that loads them, and a unit without rules, are not looked at", async () => {
    const { firewall: _firewall, ...services } = SERVICES;
    await activated(one, { ...UNPROBED, services });
    expect(await drift()).toEqual({ store: [], files: [], units: [] });
    const { [RULES]: _rules, ...rest } = one;
    await activated(rest);
    expect(await drift()).toEqual({ store: [], files: [], units: [] });
  });

  test("rules are compared by their tables, whatever their comments say", async () => {
    const commented = TABLE.replace("accept", 'accept comment "table inet portico {"');
    const content = `table ip first {\n}\n${commented}\ntable ip last {\n}\n`;
    host.deliver({ ...one, [RULES]: { role: "firewall", content } }, UNPROBED);
    await host.activate();
    host.write("/run/rules-ip-first", "table ip first {\n}\n");
    host.write("/run/rules-ip-last", "table ip last {\n}\n");
    host.write("/run/rules-inet-portico", `${commented}\n`);
    expect(await drift()).toMatchObject({ firewall: [] });
  });

  test("nothing was deployed", async () => {
    expect(await host.call("drift")).toEqual({ lines: [] });
  });

  test("all is as it was activated", async () => {
    const unit = (text: string) => ({ role: "unit", content: text }) as const;
    await activated({
      ...one,
      [`${UNITS}/helper.service`]: unit("[Service]\n# has no [Install]\n"),
      [`${UNITS}/portico.service.d/ours.conf`]: unit("[Service]\n"),
    });
    // What an administrator adds to all services is not about ours.
    host.write("/run/units/portico.service.dropins", "/etc/systemd/system/service.d/all.conf");
    expect(await drift()).toEqual({ store: [], files: [], units: [], firewall: [] });
    // What lets in others further up is reported for the files, and a unit whose file is gone for that file.
    chmodSync(host.at("/usr/share"), 0o777);
    rmSync(host.at(`${UNITS}/firewall.service`));
    host.write("/run/units/firewall.service.fragment", `${UNITS}/firewall.service`);
    expect(await drift()).toMatchObject({
      files: [
        { at: "/etc/systemd/system/firewall.service", what: "is missing" },
        {
          at: "/usr/share/portico/default/index.html",
          what: expect.stringContaining("is below /usr/share, which"),
          fix: expect.stringContaining("Deploy the file below directories that only root can change"),
        },
      ],
      units: [],
    });
    // The store is for root only.
    expect(await host.call("drift", undefined, { uid: 65_534 })).toEqual({ lines: [] });
  });

  test("everything that can be changed by hand", async () => {
    await activated(one);
    const blob = (path: string): string => {
      const { deployment } = JSON.parse(host.read(`${STORE}/state.json`)) as { deployment: DeploymentInput };
      return `${STORE}/blobs/${deployment.files.find((file) => file.path === path)!.sha256}`;
    };
    chmodSync(host.at(STORE), 0o750);
    host.write(`${STORE}/command`, "#!/bin/sh\n");
    rmSync(host.at(blob(KEY)));
    host.write(blob(CONFIG), "x");
    host.write(CONFIG, "{}");
    chmodSync(host.at(KEY), 0o640);
    rmSync(host.at("/etc/portico/tls/cacert.pem"));
    symlinkSync("/etc/hostname", host.at("/etc/portico/tls/cacert.pem"));
    rmSync(host.at(RUNTIME));
    rmSync(host.at("/usr/share/portico/default"), { recursive: true });
    writeFileSync(host.at("/usr/share/portico/default"), "");
    chmodSync(host.at("/etc/portico/tls"), 0o775);
    chownSync(host.at("/usr/lib/portico"), 1234, 0);
    host.write(`${UNITS}/portico.service.d/mine.conf`, "");
    host.write("/run/units/portico.service.fragment", "/run/mine/portico.service");
    rmSync(host.at(`${UNITS}/multi-user.target.wants`), { recursive: true });
    host.write(`${UNITS}/portico.socket`, "[Socket]\n");
    host.state("firewall.service", "failed");
    host.write("/run/rules-inet-portico", "table inet portico {\n}\n");
    symlinkSync("/dev/null", host.at(`${UNITS}/web.service`));
    expect(await drift()).toMatchInlineSnapshot(`
{
  "files": [
    {"at":"/usr/share/portico/default","what":"is not a directory","fix":"Move /usr/share/portico/default away, then NODE /root/entry.js activate --again"},
    {"at":"/etc/portico/portico.json","what":"has different content","fix":"NODE /root/entry.js activate --again"},
    {"at":"/etc/portico/tls/cacert.pem","what":"is a link to /etc/hostname","fix":"NODE /root/entry.js activate --again"},
    {"at":"/etc/portico/tls/privkey.pem","what":"has mode 0640 instead of 0600","fix":"NODE /root/entry.js activate --again"},
    {"at":"/etc/systemd/system/portico.socket","what":"has different content","fix":"NODE /root/entry.js activate --again"},
    {"at":"/usr/lib/portico/portico.mjs","what":"is missing","fix":"NODE /root/entry.js activate --again"},
    {"at":"/etc/portico/tls","what":"users other than root may write to it (mode 0775, user 0)","fix":"chown root:root /etc/portico/tls && chmod go-w /etc/portico/tls"},
    {"at":"/usr/lib/portico","what":"users other than root may write to it (mode 0755, user 1234)","fix":"chown root:root /usr/lib/portico && chmod go-w /usr/lib/portico"},
  ],
  "firewall": [
    {"at":"firewall.service","what":"is failed","fix":"systemctl start firewall.service"},
    {"at":"/etc/portico/firewall.nft","what":"the table inet portico is loaded with other rules","fix":"NODE /root/entry.js activate --again"},
  ],
  "store": [
    {"at":"/var/lib/portico/deployment","what":"can be accessed by users other than root (mode 0750)","fix":"chown root:root /var/lib/portico/deployment && chmod 700 /var/lib/portico/deployment"},
    {"at":"/var/lib/portico/deployment/blobs/HASH","what":"is damaged: /etc/portico/portico.json could not be put back","fix":"NODE /root/entry.js activate --again"},
    {"at":"/var/lib/portico/deployment/blobs/HASH","what":"is missing: /etc/portico/tls/privkey.pem could not be put back","fix":"NODE /root/entry.js activate --again"},
    {"at":"/var/lib/portico/deployment/command","what":"is missing or was changed: this command runs portico on the host, and removes the deployment","fix":"NODE /root/entry.js activate --again"},
  ],
  "units": [
    {"at":"firewall.service","what":"has failed","fix":"systemctl restart firewall.service; journalctl -u firewall.service"},
    {"at":"portico.service","what":"is loaded from /run/mine/portico.service","fix":"rm /run/mine/portico.service, then NODE /root/entry.js activate --again"},
    {"at":"portico.service","what":"/etc/systemd/system/portico.service.d/mine.conf adds to the unit, but is not part of the deployment","fix":"rm /etc/systemd/system/portico.service.d/mine.conf, then NODE /root/entry.js activate --again"},
    {"at":"portico.socket","what":"its files have changed since systemd read them","fix":"NODE /root/entry.js activate --again"},
    {"at":"web.service","what":"is masked","fix":"systemctl unmask web.service && systemctl enable --now web.service"},
  ],
}
`);
  });

  const AGAIN = `${STORE}/command activate --again`;
  const BY_RUNNING = "NODE /root/entry.js";
  const noDirectory = "is not a directory";

  test.each<[string, string, () => void, { what: string; fix: string }]>([
    [
      "a file",
      "/etc/portico/tls",
      () => host.write("/etc/portico/tls", ""),
      { what: noDirectory, fix: `Move /etc/portico/tls away, then ${AGAIN}` },
    ],
    [
      "a link to itself",
      "/etc/portico/tls",
      () => symlinkSync("tls", host.at("/etc/portico/tls")),
      { what: noDirectory, fix: `Move /etc/portico/tls away, then ${AGAIN}` },
    ],
    [
      "a directory",
      KEY,
      () => mkdirSync(host.at(KEY)),
      { what: "is not a regular file", fix: `Move ${KEY} away, then ${AGAIN}` },
    ],
    [
      "a file, and the programs are gone",
      "/usr/lib/portico",
      () => host.write("/usr/lib/portico", ""),
      { what: noDirectory, fix: `Move /usr/lib/portico away, then ${BY_RUNNING} activate --again` },
    ],
  ])("%s is where %s was: the one thing that has to be moved", async (_what, at, replace, found) => {
    await activated(one);
    rmSync(host.at(at), { recursive: true });
    replace();
    expect(await drift()).toMatchObject({ store: [], files: [{ at, ...found }] });
    expect((await drift()) as SeenDrift["drift"]).toHaveProperty("files.length", 1);
    const { problems } = await host.activate({ again: true });
    const said = problems!.map(({ path, message }) => `${path}: ${message}`);
    expect(said.length).toBeGreaterThan(0);
    expect(new Set(said.map((text) => text.replace(/^.*: is/, "is")))).toEqual(
      new Set([at === KEY ? "is not a regular file" : `is below ${at}, which is not a directory`]),
    );
    renameSync(host.at(at), host.at("/root/away"));
    expect(await host.activate({ again: true })).not.toHaveProperty("problems");
    expect(await drift()).toMatchObject({ store: [], files: [] });
    rmSync(host.at("/root/away"), { recursive: true });
  });

  test.each<[string, () => void]>([
    ["a file", () => host.write(STORE, "")],
    ["a link to itself", () => symlinkSync("deployment", host.at(STORE))],
  ])("%s is where the store was", async (_what, replace) => {
    await activated(one);
    rmSync(host.at(STORE), { recursive: true });
    replace();
    const fix = `Move ${STORE} away, then ${BY_RUNNING} activate (creates a new record from the files on the host)`;
    expect(await drift()).toMatchObject({ store: [{ at: STORE, fix }], files: [] });
    expect((await host.activate()).problems).toMatchObject([{ path: STORE }]);
    rmSync(host.at(STORE));
  });

  test.each<[string, () => void, object]>([
    [
      "the runtime, which is a file of the deployment",
      () => rmSync(host.at(RUNTIME)),
      { store: [], files: [{ at: RUNTIME, what: "is missing", fix: `${BY_RUNNING} activate --again` }] },
    ],
    [
      "the runtime, empty",
      () => host.write(RUNTIME, ""),
      {
        store: [],
        files: [{ at: RUNTIME, what: "has different content", fix: `${BY_RUNNING} activate --again` }],
      },
    ],
    [
      "a Node that nothing else needs",
      () => host.write(`${STORE}/programs`, `/root/node\n${RUNTIME}\n`),
      {
        store: [
          {
            at: `${STORE}/command`,
            what: "does not run portico: /root/node: is missing [activation.lost-program]",
            fix: `${BY_RUNNING} activate --again`,
          },
        ],
        files: [],
      },
    ],
  ])("a program of the command is lost: %s", async (_what, lose, found) => {
    await activated(one);
    lose();
    expect(await drift()).toMatchObject(found);
    expect(await host.activate({ again: true })).not.toHaveProperty("problems");
    expect(await drift()).toMatchObject({ store: [], files: [] });
  });

  test("the Node of the deployment is lost: the store has no copy", async () => {
    const node = "/usr/lib/portico/node";
    const script = {
      role: "node",
      mode: "0755",
      content: `#!/bin/sh\nexec ${process.execPath} "$@"\n`,
    } as const;
    await activated({ ...one, [node]: script });
    const fix = expect.stringMatching(/^Run `terraform apply -replace=ADDRESS` .* sends all files again/);
    const found = { at: node, what: "has different content", fix };
    host.write(node, "", 0o755);
    expect(await drift()).toMatchObject({ store: [], files: [found] });
    rmSync(host.at(node));
    expect(await drift()).toMatchObject({ store: [], files: [{ ...found, what: "is missing" }] });
    host.write(node, script.content, 0o755);
    chmodSync(host.at(node), 0o700);
    expect(await drift()).toMatchObject({ store: [], files: [{ at: node, fix: AGAIN }] });
  });

  test("units and rules in other states", async () => {
    const daemons = daemonsOf({ ...DAEMONS, webdav: "dav.service", fileServer: "files.service" });
    host.write("/run/units/files.service.links", "enabled");
    for (const unit of ["dav.service", "files.service"]) host.state(unit, "active");
    await activated(one, { ...UNPROBED, services: { ...SERVICES, daemons } });
    rmSync(host.at("/run/units/dav.service"));
    host.write("/run/units/web.service.links", "disabled");
    host.state("files.service", "failed");
    host.state("firewall.service", "inactive");
    rmSync(host.at(`${UNITS}/multi-user.target.wants/firewall.service`));
    rmSync(host.at("/run/rules-inet-portico"));
    expect(await drift()).toMatchInlineSnapshot(`
{
  "files": [],
  "firewall": [
    {"at":"firewall.service","what":"is inactive","fix":"systemctl start firewall.service"},
    {"at":"/etc/portico/firewall.nft","what":"the table inet portico is not loaded","fix":"/var/lib/portico/deployment/command activate --again"},
  ],
  "store": [],
  "units": [
    {"at":"firewall.service","what":"is disabled: it does not start at boot","fix":"systemctl enable --now firewall.service"},
    {"at":"files.service","what":"has failed","fix":"systemctl restart files.service; journalctl -u files.service"},
    {"at":"dav.service","what":"does not exist","fix":"Install dav.service again"},
    {"at":"web.service","what":"is disabled: it does not start at boot","fix":"systemctl enable --now web.service"},
  ],
}
`);
    host.write(RULES, "broken");
    const firewallUnknown = "The loaded rules cannot be compared: broken";
    expect(await drift()).toMatchObject({
      files: [{ at: RULES, what: "has different content" }],
      firewall: [{ at: "firewall.service", what: "is inactive" }],
      firewallUnknown,
    });
    host.says("show", "no bus");
    expect(await drift()).toMatchObject({ files: [{ at: RULES }], firewall: [], firewallUnknown, units: [] });
  });

  test("the store has lost what it knew", async () => {
    const lost = async (): Promise<unknown> => ((await drift()) as SeenDrift["drift"]).store;
    const state = `${STORE}/state.json`;
    host.write(CONFIG, "before");
    await activated(one);
    const text = host.read(state);
    rmSync(host.at(`${STORE}/blobs`), { recursive: true });
    const blobs = (await lost()) as object[];
    const at = `${STORE}/blobs/HASH`;
    const again = `${STORE}/command activate --again`;
    const paths = [...Object.keys(one).sort(), "/etc/portico/deployment.json"];
    expect(blobs.slice(0, -1)).toEqual(
      paths.map((path) => ({ at, what: `is missing: ${path} could not be put back`, fix: again })),
    );
    expect(blobs.at(-1)).toEqual({
      at,
      what: `is missing: a destroy cannot restore the previous content of ${CONFIG}`,
      fix: `Restore the file from a backup of ${STORE}, or write ${CONFIG} by hand after a destroy`,
    });
    rmSync(host.at(state));
    const anew = (command: string) => ({
      at: state,
      what: "does not exist: the state of the host before the deployment is no longer known",
      fix: `${command} activate (creates a new record from the files on the host)`,
    });
    expect(await lost()).toEqual([anew(`${STORE}/command`)]);
    rmSync(host.at(`${STORE}/command`));
    expect(await lost()).toEqual([anew("NODE /root/entry.js")]);
    host.write(state, "{");
    const journal = `${STORE}/journal.json`;
    host.write(
      journal,
      text.replace(/^\{"version":1/, '{"version":1,"kind":"deactivation","startedAt":"then"'),
    );
    const damaged = {
      at: state,
      what: "was not written by this release of portico",
      fix: "Remove the file and activate again. A destroy can then no longer restore the files from before the first activation.",
    };
    const cutOff = {
      at: journal,
      what: "the deactivation of then was cut off",
      fix: "NODE /root/entry.js recover",
    };
    rmSync(host.at("/etc/portico/deployment.json"));
    expect(await lost()).toEqual([damaged, cutOff]);
    // Its process still has the lock.
    const script = "echo locked; exec sleep 30";
    const locked = spawn("flock", ["--no-fork", host.at("/var/lib/portico/lock"), "sh", "-c", script]);
    await nextEvent(locked.stdout, "data");
    expect(await lost()).toEqual([damaged]);
    locked.kill();
  });
});

describe("refused before anything is touched:", () => {
  const refused = async (call: object = {}): Promise<unknown> => {
    const { problems } = await host.activate({}, call);
    // Even so, there is a command to remove what may be left, unless this host cannot have it.
    if (host.exists(STORE)) expect(plain(host.read(`${STORE}/programs`))).toBe("NODE\n/root/entry.js\n");
    expect([host.exists(CONFIG), host.calls().filter((each) => each.includes("journal"))]).toEqual([
      false,
      [],
    ]);
    return problems?.map(({ code, path, message }) => [code, path, message]);
  };

  test("units, rules and other programs that do not take what they get", async () => {
    const services = {
      ...SERVICES,
      daemons: daemonsOf({ ...DAEMONS, fileServer: "files.service", webdav: "dav.service" }),
      keepalived: "keepalived.service",
    };
    host.state("dav.service", "active");
    symlinkSync("/dev/null", host.at(`${UNITS}/dav.service`));
    host.deliver(
      {
        ...one,
        [RULES]: { role: "firewall", content: "broken tcp dport 80 accept\n" },
        "/etc/portico/keepalived.conf": { role: "keepalived", content: "x" },
        [`${UNITS}/firewall.service.d/more.conf`]: { role: "firewall", content: "broken" },
        [`${UNITS}/a@.service`]: { role: "unit", content: "[Unit]\nOnFailure=a@1.service b@1.service\n" },
      },
      { ...UNPROBED, services },
    );
    const staging = `${STORE}/staging/units`;
    const lines = [
      `${staging}/portico.service:3: Unknown key 'X' in section [Service], ignoring.`,
      `portico.service: Command ${RUNTIME} is not executable: No such file or directory`,
      "portico.service: Command /usr/bin/missing is not executable: No such file or directory",
      "a@check.service: Has no ExecStart=.",
      "theirs.service: Is not ours.",
    ];
    host.says("systemd-analyze", `${lines.join("\n")}\n`, 1);
    host.says("keepalived", "line 1: unknown x\n", 2);
    expect(await refused({ env: { SSH_CONNECTION: "192.0.2.7 50000 192.0.2.10 22" } }))
      .toMatchInlineSnapshot(`
[
  ["activation.unknown-unit","/etc/systemd/system/a@.service: OnFailure","is not a unit of this host"],
  ["activation.bad-unit","portico.service","portico.service: Command /usr/bin/missing is not executable: No such file or directory"],
  ["activation.bad-unit","a@check.service","a@check.service: Has no ExecStart=."],
  ["activation.command-failed","nft --check /etc/portico/firewall.nft","failed with status 1: /etc/portico/firewall.nft:1:broken tcp dport 80 accept"],
  ["activation.locked-out","/etc/portico/firewall.nft","does not open port 22 to 192.0.2.7, the address of this session"],
  ["activation.command-failed","keepalived -t /etc/portico/keepalived.conf","failed with status 2: line 1: unknown x"],
  ["activation.unknown-unit","services.daemons[0].unit","is not a unit of this host"],
  ["activation.unknown-unit","services.keepalived","is not a unit of this host"],
  ["activation.masked-unit","dav.service","is masked: systemd refuses to start it"],
]
`);
    host.says("keepalived", "", 127);
    // Only what is said of keepalived is another.
    const missing = (await host.activate()).problems!;
    expect(missing.filter(({ path }) => path === "host")).toEqual([
      expect.objectContaining({
        code: "host.no-program",
        fix: "Install the package on the host: `apt-get install keepalived`. Then apply again.",
        message: "does not have the program `keepalived`",
      }),
    ]);
    expect(missing.map(({ path }) => path).slice(3)).toEqual([
      "nft --check /etc/portico/firewall.nft",
      "host",
      "services.daemons[0].unit",
      "services.keepalived",
      "dav.service",
    ]);
  });

  test("what systemd does not know, and what it only warns of, is a warning", async () => {
    host.deliver(one, UNPROBED);
    host.says("systemd-analyze", "portico.service:3: Something odd\n");
    expect((await host.activate({ dryRun: true })).value.warnings).toMatchInlineSnapshot(`
[
  {
    "allowed": "DNS:files.example.org, IP Address:127.0.0.1",
    "code": "files.name-not-covered",
    "fix": "Use a certificate with the name among its subject alternative names, or remove the name from the config.",
    "message": "does not cover 192.0.2.10",
    "path": "listeners[1].tls.certificate (/etc/portico/tls/cacert.pem)",
  },
  {"code":"activation.bad-unit","path":"portico.service","message":"portico.service:3: Something odd","fix":"Correct the unit; the message gives systemd's reason."},
]
`);
    host.says("systemd-analyze", "no such program", 127);
    expect((await host.activate({ dryRun: true })).value.warnings.slice(1)).toMatchInlineSnapshot(`
[
  {"code":"activation.command-failed","path":"systemd-analyze","message":"is not installed here: the units were not verified","fix":"Install the package that contains systemd-analyze."},
]
`);
    // Units that the host has from elsewhere are not asked about.
    const others = Object.entries(one).filter(([, { role }]) => role !== "unit");
    for (const [path, { content, role }] of Object.entries(one))
      if (role === "unit") host.write(path, content);
    host.deliver(Object.fromEntries(others), UNPROBED);
    const { value, problems } = await host.activate({ dryRun: true });
    expect([value?.warnings.slice(1), problems]).toEqual([[], undefined]);
  });

  test("a port that another process has", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const config = JSON.parse(one[CONFIG]!.content) as ProxyConfigInput;
    const listeners = config.listeners.map((each) => (each.port === 80 ? { ...each, port } : each));
    const files: SiteFiles = {
      ...one,
      [CONFIG]: { role: "config", content: JSON.stringify({ ...config, listeners }) },
    };
    host.deliver(files, UNPROBED);
    expect(
      JSON.parse(
        JSON.stringify(await refused())
          .replaceAll(`:${port}`, ":PORT")
          .replace(/taken: .* \(pid \d+\)/, "taken: NAME (pid PID)"),
      ),
    ).toMatchInlineSnapshot(`
[
  ["activation.port-in-use","0.0.0.0:PORT","is taken: NAME (pid PID) listens there"],
]
`);
    // Systemd has opened it already.
    await activated(one);
    host.deliver(files, UNPROBED);
    expect((await host.activate({ dryRun: true })).problems).toBeUndefined();
    server.close();
  });

  test("a directory that others may write to", async () => {
    mkdirSync(host.at("/etc/portico/tls"), { recursive: true });
    chmodSync(host.at("/etc/portico/tls"), 0o777);
    host.deliver(one, UNPROBED);
    expect(await refused()).toMatchInlineSnapshot(`
[
  ["files.shared-directory","/etc/portico/tls/cacert.pem","is below /etc/portico/tls, which belongs to root, but users other than root may change it: root does not follow the path further"],
  ["files.shared-directory","/etc/portico/tls/privkey.pem","is below /etc/portico/tls, which belongs to root, but users other than root may change it: root does not follow the path further"],
]
`);
  });

  test("a host without systemd", async () => {
    rmSync(host.at("/run/systemd"), { recursive: true });
    host.deliver(one, UNPROBED);
    expect(await refused()).toMatchInlineSnapshot(`
[
  ["activation.no-systemd","/run/systemd/system","does not exist"],
]
`);
    expect((await host.call("canDetach", "/")).value).toBe(false);
  });
});

describe("cut off by a kill", () => {
  const killed = (command: string): void =>
    host.write(
      `/run/units/portico.service.${command}`,
      `rm /run/units/portico.service.${command}; kill -9 $PPID`,
    );

  test("an activation is rolled back to the last good state, and its unit for the boot goes", async () => {
    await activated(one);
    killed("reload");
    host.deliver({ ...one, [CONFIG]: two[CONFIG]! }, UNPROBED);
    await host.cutOff("activate", { incoming: INCOMING });
    expect(host.read(CONFIG)).toBe(two[CONFIG]!.content);
    const unit = host.read(`${UNITS}/portico-recovery.service`);
    const { mode, uid, gid } = statSync(host.at(`${UNITS}/portico-recovery.service`));
    expect([mode & 0o7777, uid, gid]).toEqual([0o644, 0, 0]);
    // Until it has succeeded, it is repaired by the programs that it came with.
    expect(plain(host.read(`${STORE}/programs`))).toBe("NODE\n/root/entry.js\n");
    expect(unit).toContain(
      "After=network.target remote-fs.target portico.service portico.socket web.service firewall.service\n",
    );
    expect(readlinkSync(host.at(`${UNITS}/multi-user.target.wants/portico-recovery.service`))).toBe(
      "../portico-recovery.service",
    );
    expect(plain(((await drift()) as SeenDrift["drift"]).store)).toMatchInlineSnapshot(`
[
  {"at":"/var/lib/portico/deployment/journal.json","what":"the activation of TIME was cut off","fix":"/var/lib/portico/deployment/command recover"},
]
`);
    const planned = await host.activate({ dryRun: true });
    expect(plain(planned.lines)).toMatchInlineSnapshot(
      `["the activation of TIME was cut off: the next activation repairs this first; its steps may then differ"]`,
    );
    host.calls();
    expect(plain(await host.call("recover"))).toMatchInlineSnapshot(`
{
  "lines": ["the activation of TIME was cut off: rolling back","write files","  /etc/portico/portico.json: restored","  /etc/portico/deployment.json: restored","systemctl reload portico.service"],
  "value": {
    "kind": "activation",
    "problems": [],
  },
}
`);
    expect(host.calls()).toMatchInlineSnapshot(`["reload portico.service (journal)"]`);
    expect(host.read(CONFIG)).toBe(one[CONFIG]!.content);
    expect(host.below(UNITS).filter((name) => name.includes("recovery"))).toEqual([]);
    expect(plain(host.read(`${STORE}/programs`))).toBe(`NODE\n${RUNTIME}\n`);
    // What a roll-back could not remove goes the next time; a dry run leaves even that.
    host.write(`${UNITS}/portico-recovery.service`, "");
    await host.activate({ dryRun: true });
    expect(host.exists(`${UNITS}/portico-recovery.service`)).toBe(true);
    expect(await host.call("recover")).toEqual({ lines: [] });
    expect(host.exists(`${UNITS}/portico-recovery.service`)).toBe(false);
  });

  test("a first activation: what removes a deployment stays", async () => {
    killed("start");
    host.deliver(one, UNPROBED);
    await host.cutOff("activate", { incoming: INCOMING });
    expect((await host.call("recover")).value as object).toEqual({ kind: "activation", problems: [] });
    expect([host.exists(CONFIG), below(STORE)]).toEqual([
      false,
      ["blobs", "command", "logs.json", "programs"],
    ]);
  });

  test("a deactivation is finished; a content that is gone is named", async () => {
    host.write(CONFIG, "before");
    await activated(one);
    killed("stop");
    await host.cutOff("deactivate", {});
    expect(host.read(CONFIG)).toBe(one[CONFIG]!.content);
    rmSync(host.at(`${STORE}/blobs/${sha256("before")}`));
    const path = "/etc/portico/portico.json";
    const message =
      "stays as it is: its previous content, /var/lib/portico/deployment/blobs/HASH, is missing or damaged";
    expect(plain(await host.call("recover"))).toMatchObject({
      lines: [
        "the deactivation of TIME was cut off: carrying on",
        ...REMOVAL_LINES.slice(1).filter((line) => !line.includes(path)),
        `  ${path}: ${message}`,
      ],
      value: { kind: "deactivation", problems: [{ code: "activation.not-restored", path, message }] },
    });
    expect([host.below("/etc/portico"), host.below(UNITS), host.exists(STORE)]).toEqual([
      ["portico.json"],
      [],
      false,
    ]);
  });
});

describe("the running proxy", () => {
  let control: ControlServer;
  let asked: ControlRequest[];
  let outcomes: Partial<Record<ControlRequest["command"], ControlOutcome>>;
  beforeEach(async () => {
    asked = [];
    outcomes = {};
    control = await ControlServer.open(host.at("/run/portico/control.sock"), (request) => {
      asked.push(request);
      const done: ControlOutcome = { ok: true, value: { message: "done", warnings: [] } };
      return Promise.resolve(outcomes[request.command] ?? done);
    });
  });
  afterEach(() => control.close());

  const status = (loaded: LoadedState): void =>
    void (outcomes.status = { ok: true, value: { message: "", warnings: [], loaded } });

  test("has loaded something else than what is installed", async () => {
    await activated(one);
    status({ runtime: "r", config: "c", tls: "t" });
    expect(((await drift()) as SeenDrift["drift"]).running).toMatchInlineSnapshot(`
[
  {"at":"runtime","what":"is not the one that runs","fix":"/var/lib/portico/deployment/command activate --again"},
  {"at":"config","what":"was changed since it was loaded","fix":"/var/lib/portico/deployment/command activate --again"},
  {"at":"certificate","what":"was changed since it was loaded","fix":"/var/lib/portico/deployment/command activate --again"},
]
`);
    expect(asked).toEqual([{ command: "status" }]);
    host.deliver(one, UNPROBED);
    expect((await host.activate()).lines).toMatchInlineSnapshot(`
     [
       "runtime: is not the one that runs",
       "config: was changed since it was loaded",
       "certificate: was changed since it was loaded",
       "will upgrade portico.service, which interrupts nothing: it runs with another release than the installed one",
       "portico upgrade (portico.service)",
     ]
    `);
    expect(asked.at(-1)).toEqual({ command: "upgrade" });
    const [runtime, config] = [one[RUNTIME]!, one[CONFIG]!].map(({ content }) => sha256(content));
    status({ runtime: runtime!, config: config!, tls: "t" });
    expect(((await drift()) as SeenDrift["drift"]).running).toMatchInlineSnapshot(`
[
  {"at":"config","what":"was changed since it was loaded","fix":"/var/lib/portico/deployment/command activate --again"},
  {"at":"certificate","what":"was changed since it was loaded","fix":"/var/lib/portico/deployment/command activate --again"},
]
`);
    host.deliver(one, UNPROBED);
    expect((await host.activate({ dryRun: true })).value.plan).toMatchInlineSnapshot(
      `["config: was changed since it was loaded","certificate: was changed since it was loaded","will reload portico.service, which interrupts nothing: it runs with another release than the installed one","systemctl reload portico.service"]`,
    );
    // A response without its state says nothing of it.
    outcomes.status = { ok: true, value: { message: "", warnings: [] } };
    expect(((await drift()) as SeenDrift["drift"]).running).toBeUndefined();
  });

  test("is restarted if the directory of its logs is gone, whatever it has loaded; expired certificates are no obstacle", async () => {
    await activated(one);
    status({ runtime: sha256(one[RUNTIME]!.content), config: "c", tls: "t" });
    rmSync(host.at("/var/log/portico"), { recursive: true });
    host.deliver(one, UNPROBED);
    expect((await host.activate({ dryRun: true })).value.plan).toEqual([
      "/var/log/portico: was removed, and the proxy cannot create it again",
      "config: was changed since it was loaded",
      "certificate: was changed since it was loaded",
      "will restart portico.service, which interrupts its work: it runs with another release than the installed one",
      "systemctl reenable portico.service",
      "systemctl restart portico.service",
    ]);
    const { cert } = await issue({ key: one[KEY]!.content, names: ["files.example.org"], to: -0.5 });
    host.write("/etc/portico/tls/cacert.pem", cert);
    expect(((await drift()) as SeenDrift["drift"]).running).toHaveLength(2);
    host.write(CONFIG, "{");
    expect(((await drift()) as SeenDrift["drift"]).running).toBeUndefined();
  });

  test("that cannot reload what is installed is left as it was", async () => {
    await activated(one);
    status({ runtime: sha256(one[RUNTIME]!.content), config: "c", tls: "t" });
    host.write("/run/units/portico.service.reload", "exit 1");
    host.deliver(one, UNPROBED);
    outcomes.notify = {
      ok: false,
      problems: [{ code: "control.no-notifications", path: "", message: "x", fix: "x" }],
    };
    const failed = await host.activate();
    expect(failed.reason).toMatchObject([{ path: "systemctl reload portico.service" }]);
    expect(failed.lines.join()).not.toContain("notif");
    expect(asked.at(-1)).toMatchObject({
      command: "notify",
      rolledBack: { reason: expect.stringContaining("systemctl reload portico.service: ") },
    });
    expect(below(STORE)).toEqual(["blobs", "command", "logs.json", "programs", "state.json"]);
  });

  test("has no certificate from its authority yet", async () => {
    const config = JSON.parse(one[CONFIG]!.content) as ProxyConfigInput;
    const acme = { authority: "ca", names: ["files.example.org"] };
    const listeners = config.listeners.map(({ tls, ...each }) =>
      tls === undefined ? each : { ...each, tls: { acme } },
    );
    const content = JSON.stringify({
      ...config,
      certificateAuthorities: [{ name: "ca", agreeToTerms: true }],
      listeners,
    });
    const certificate = { names: ["files.example.org"], listeners: ["https"], source: "temporary" } as const;
    outcomes.certificates = {
      ok: true,
      value: {
        message: "",
        warnings: [],
        certificates: [
          { ...certificate, from: "ca", issuer: "x", notBefore: 0, notAfter: 0, state: "ordering" },
        ],
      },
    };
    host.deliver({ ...one, [CONFIG]: { role: "config", content } }, UNPROBED);
    expect((await host.activate()).lines.at(-1)).toBe(
      "WAIT  certificate for files.example.org: requested from ca | until then, a temporary certificate is served; see `portico certificates`",
    );
  });

  test("is restarted if it dies while it hands over; if it refuses, the runtime before comes back", async () => {
    await activated(one);
    const runtime = { ...one, [RUNTIME]: two[RUNTIME]! };
    outcomes.upgrade = {
      ok: false,
      problems: [{ code: "runtime.no-handover", path: "", message: "refused", fix: "x" } as never],
    };
    host.deliver(runtime, UNPROBED);
    const { lines, reason, notRestored } = await host.activate();
    expect({ lines, reason, notRestored }).toMatchInlineSnapshot(`
{
  "lines": [
    "will upgrade portico.service, which interrupts nothing: /usr/lib/portico/portico.mjs will change",
    "write files",
    "  /usr/lib/portico/portico.mjs: content",
    "  /etc/portico/deployment.json: content",
    "portico upgrade (portico.service)",
    "failed: refused [runtime.no-handover]
    fix:      Read the journal of the proxy.
    see:      cdktf-portico/docs/errors.md#runtimeno-handover",
    "rolling back to the last good state",
    "write files",
    "  /usr/lib/portico/portico.mjs: restored",
    "  /etc/portico/deployment.json: restored",
    "portico upgrade (portico.service)",
  ],
  "notRestored": [],
  "reason": [
    {"code":"runtime.no-handover","path":"","message":"refused","fix":"Read the journal of the proxy."},
  ],
}
`);
    expect(host.calls().slice(2)).toMatchInlineSnapshot(`["restart portico.service (journal)"]`);
    expect(asked.map(({ command }) => command)).toMatchInlineSnapshot(
      `["status","upgrade","upgrade","notify"]`,
    );
    // No socket: its release is older than the handover.
    rmSync(host.at("/run/portico/control.sock"));
    expect((await host.activate()).lines.slice(-1)).toMatchInlineSnapshot(
      `["portico upgrade (portico.service)"]`,
    );
    expect(host.calls().slice(2)).toMatchInlineSnapshot(`["restart portico.service (journal)"]`);
  });
});

describe("how the host should respond", () => {
  const HOST = "files.example.org";
  let server: Server;
  let port: number;
  let responds: (row: ExpectedProbe) => ProbeOutcome;
  let plainConfig: ProxyConfigInput;
  let files: SiteFiles;
  beforeEach(async () => {
    responds = asExpected;
    server = createHttpServer((request, response) => {
      const url = `http://${request.headers.host}${request.url}`;
      const row = siteRows(configOf(plainConfig), { imagePath: "a.png" }).find(
        ({ request: { scheme, host: name, path } }) => `${scheme}://${name}${path}` === url,
      );
      const outcome = row === undefined ? undefined : responds(row);
      if (outcome === undefined || "failure" in outcome) return void response.writeHead(500).end();
      response.writeHead(outcome.response.status, { ...outcome.response.headers }).end();
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    ({ port } = server.address() as AddressInfo);
    const { listeners, ...rest } = siteConfig({ mode: "plain", host: HOST });
    plainConfig = { ...rest, listeners: listeners.map((listener) => ({ ...listener, port })) };
    files = { ...one, [CONFIG]: { role: "config", content: JSON.stringify(plainConfig) } };
    host.write("/opt/sync/media/a.png", "x");
    // Nothing opens the port from here on.
    await activated(one);
  });
  afterEach(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });
  const probed = (more: object = {}): Partial<DeploymentInput> => ({
    services: SERVICES,
    expect: siteExpect({ mode: "plain", host: HOST }),
    probe: { timeoutSeconds: 1 },
    ...more,
  });
  const seen = (value: unknown): unknown =>
    JSON.parse(JSON.stringify(plain(value)).replaceAll(`:${port}`, ":PORT"));

  test("is asked for until it is so", async () => {
    let questions = 0;
    responds = (row) => (questions++ < 3 ? response(500) : asExpected(row));
    // It ends when the responses are as expected, and a busy machine takes long to ask.
    host.deliver(files, probed({ probe: { timeoutSeconds: 60 } }));
    const { value, reason } = await host.activate();
    expect(reason).toBeUndefined();
    expect((value.responses as CheckedResponse[]).map(({ name, pass }) => [name, pass])).toEqual(
      [
        ...["default server", "media file", "application over http", "application's Server field"],
        ...["file server daemon", "WebDAV daemon"],
      ].map((name) => [name, true]),
    );
  });

  test("is asked for without another look at the configs: the new one and the installed one are parsed once", async () => {
    const parses = async (): Promise<number> => (await host.call<number>("parses")).value;
    let questions = 0;
    responds = (row) => (questions++ < 12 ? response(500) : asExpected(row));
    for (const configs of [2, 1]) {
      host.deliver(files, probed({ probe: { timeoutSeconds: 60 } }));
      const before = await parses();
      expect((await host.activate()).reason).toBeUndefined();
      expect((await parses()) - before).toBe(configs);
    }
  });

  test("or else the host goes back", async () => {
    host.deliver(files, probed());
    expect((await host.activate()).reason).toBeUndefined();
    // The first request is made before anything is changed.
    let asked = 0;
    responds = (row) => (subjectOf(row) === "media" && asked++ > 0 ? response(404) : asExpected(row));
    host.deliver(
      { ...files, "/usr/share/portico/default/index.html": two["/usr/share/portico/default/index.html"]! },
      probed(),
    );
    const { lines, reason, notRestored } = await host.activate();
    const unexpected = { code: "activation.unexpected-response", message: "media file: not as expected" };
    expect([reason, notRestored]).toMatchObject([
      [unexpected],
      [{ code: "activation.not-restored", path: "" }, unexpected],
    ]);
    expect(seen({ lines })).toMatchInlineSnapshot(`
{
  "lines": [
    "will reload portico.service, which interrupts nothing: /usr/share/portico/default/index.html will change",
    "write files",
    "  /usr/share/portico/default/index.html: content",
    "  /etc/portico/deployment.json: content",
    "systemctl reload portico.service",
    "failed: HEAD http://files.example.org:PORT/syncmedia/a.png (at 127.0.0.1:PORT): media file: not as expected [activation.unexpected-response]
    received: "404, no Content-Type, no Content-Length, no Last-Modified, no ETag, no Accept-Ranges"
    allowed:  200, Content-Type: image/*, Content-Length, Last-Modified, ETag, Accept-Ranges: bytes
    fix:      the server name in the proxy config is not the host address or domain used in the request, or the config is not enabled, or the media path in the config does not match the installation
    see:      cdktf-portico/docs/errors.md#activationunexpected-response",
    "rolling back to the last good state",
    "write files",
    "  /usr/share/portico/default/index.html: restored",
    "  /etc/portico/deployment.json: restored",
    "systemctl reload portico.service",
  ],
}
`);
  });

  test("a unit that ends after it was started", async () => {
    host.write("/run/units/portico.service.reload", "echo failed > /run/units/portico.service; exit 0");
    host.deliver(files, { services: SERVICES, probe: { enabled: false, timeoutSeconds: 1 } });
    expect((await host.activate()).reason).toMatchInlineSnapshot(`
[
  {"code":"activation.command-failed","path":"portico.service","message":"does not run","fix":"Read why in the log of the unit: journalctl -u portico.service"},
]
`);
    host.write(
      "/run/units/portico.service.reload",
      "echo failed > /run/units/portico.service; (sleep 0.3; kill -TERM $PPID) > /dev/null 2>&1 & exit 0",
    );
    host.deliver(files, { services: SERVICES, probe: { enabled: false, timeoutSeconds: 60 } });
    expect((await host.activate()).reason).toMatchInlineSnapshot(`
[
  {"code":"activation.interrupted","path":"","message":"interrupted by SIGTERM","fix":"Run the activation again."},
]
`);
  });

  test("a unit that ends, and a response that is wrong: both are said", async () => {
    responds = (row) => (subjectOf(row) === "media" ? response(404) : asExpected(row));
    host.write("/run/units/portico.service.reload", "echo failed > /run/units/portico.service; exit 0");
    host.deliver(files, probed());
    expect((await host.activate()).reason).toMatchObject([
      { code: "activation.command-failed", path: "portico.service" },
      { code: "activation.unexpected-response" },
    ]);
  });

  test("settings that are left to the application's owner are only reported", async () => {
    responds = (row) => (subjectOf(row) === "web" ? response(400) : asExpected(row));
    host.deliver(files, probed());
    const { value, reason } = await host.activate();
    expect(seen([reason, value?.responses.filter((row) => !(row as CheckedResponse).pass)]))
      .toMatchInlineSnapshot(`
[
  null,
  [
    {
      "cause": "the web application refuses the name files.example.org:PORT: ALLOWED_HOSTS does not contain it",
      "code": "web-application",
      "expected": "302, Location: http://files.example.org:PORT/sync/accounts/login/?next=/sync/, Content-Type: text/html; charset=utf-8, Vary: Accept-Language, Cookie, Content-Language",
      "fix": "Set ALLOWED_HOSTS as in /usr/share/portico/application-settings, and restart the web application.",
      "name": "application over http",
      "pass": false,
      "request": "HEAD http://files.example.org:PORT/sync/ (at 127.0.0.1:PORT)",
      "seen": "400, no Location, no Content-Type, no Vary, no Content-Language",
      "settings": ["ALLOWED_HOSTS"],
      "site": "application",
    },
  ],
]
`);
    const printed = async (): Promise<string[]> => {
      host.deliver(files, probed());
      const { code, out, err } = await host.cli(
        "activate",
        "--incoming",
        INCOMING,
        "--record",
        "/none/record",
      );
      return [String(code), err, ...out.split("\n").map((line) => line.slice(0, 40))];
    };
    const rows = (web: string): string[] =>
      [
        "PASS  default server: HEAD http://default",
        "PASS  media file: HEAD http://files.examp",
        `${web}  application over http: HEAD http://`,
        "PASS  application's Server field: HEAD ht",
        "PASS  file server daemon: HEAD http://fil",
        "PASS  WebDAV daemon: HEAD http://files.ex",
      ].map((line) => line.slice(0, 40));
    const end = ["nothing to do: the host is as deployed", ""];
    expect(await printed()).toEqual([
      "0",
      expect.stringMatching(
        /^warning: the application does not respond as expected yet, because its settings differ: ALLOWED_HOSTS\.\s[^]*`apply: true`\)\.\n$/,
      ),
      ...rows("FAIL"),
      ...end,
    ]);
    responds = asExpected;
    expect(await printed()).toEqual(["0", "", ...rows("PASS"), ...end]);
  });
});

describe("detached from its caller", () => {
  const RECORDS = "/run/portico-activation";
  beforeEach(() => rmSync(host.at(RECORDS), { recursive: true, force: true }));
  const detached = async (script: string, ...args: string[]): Promise<unknown> => {
    host.write(
      "/root/program.cjs",
      `const { appendFileSync } = require("node:fs");
      const say = (entry) => appendFileSync(process.argv.at(-1), JSON.stringify(entry) + "\\n");
      ${script}`,
    );
    const { value, lines } = await host.call("detached", { program: "/root/program.cjs", args });
    return [value, ...lines];
  };
  const units = (): unknown =>
    host.calls().map((call) =>
      call
        .replaceAll(/[0-9a-f]{8}-[-0-9a-f]{27}/g, "ID")
        .replaceAll(/\/\d+-/g, "/PID-")
        .replace(process.execPath, "NODE"),
    );

  test("as a unit, whose output is repeated", async () => {
    expect((await host.call("canDetach", "/")).value).toBe(true);
    expect((await host.call("canDetach", "/tmp")).value).toBe(false);
    expect(
      await detached(
        // Systemd is asked each second whether it still runs.
        `say({ pid: process.pid, command: "x", since: "now" }); say({ out: "one" });
      setTimeout(() => { say({ err: "two" }); say({ out: "three" }); say({ exit: 4 }); }, 1_300);`,
        "activate",
        "--json",
      ),
    ).toEqual([4, "out: one", "two", "out: three"]);
    expect(host.exists(RECORDS)).toBe(true);
    expect(units()).toMatchInlineSnapshot(`
     [
       "systemd-run --quiet --unit=portico-activation-ID --description=portico changes this host --property=KillMode=mixed --property=TimeoutStopSec=900 --property=DefaultDependencies=no --property=After=sysinit.target --property=Conflicts=shutdown.target --property=Before=shutdown.target --property=Restart=on-abnormal --property=RestartSec=1 --property=StartLimitIntervalSec=0 --property=OOMScoreAdjust=-900 --property=SuccessExitStatus=1 -- NODE /root/program.cjs activate --json --record /run/portico-activation/PID-ID.record",
     ]
    `);
    expect(host.below(RECORDS)).toEqual([]);
  });

  test("what it changes counts as done from the session of its caller", async () => {
    await detached(`say({ exit: 0 });`, "activate");
    const plainRun = units() as string[];
    const env = { SSH_CONNECTION: "192.0.2.7 50000 192.0.2.10 22" };
    await host.call("detached", { program: "/root/program.cjs", args: ["activate"] }, { env });
    const setting = `--setenv=SSH_CONNECTION=${env.SSH_CONNECTION} -- `;
    expect(units()).toEqual(plainRun.map((call) => call.replace("-- ", setting)));
    const nobody = await host.call("canDetach", "/", { uid: 65_534 });
    expect(nobody.value).toBe(false);
  });

  test.each(["SIGINT", "SIGTERM"])("it outlives a caller that %s ends", async (signal) => {
    host.write(
      "/root/program.cjs",
      `process.kill(parseInt(require("node:path").basename(process.argv.at(-1))), "${signal}");`,
    );
    expect(await host.cutOff("detached", { program: "/root/program.cjs", args: ["activate"] })).toEqual({
      code: 130,
      lines: ["it continues without this terminal; the next `portico activate` shows how it ended\n"],
    });
  });

  test("as a session where systemd starts none, and one that ends without a word", async () => {
    host.says("systemd-run", "");
    expect(await detached("", "deactivate")).toEqual([
      1,
      "it ended without any output: see `journalctl -u 'portico-activation-*'`\n",
    ]);
    expect(host.exists(RECORDS)).toBe(false);
    rmSync(host.at("/run/says/systemd-run"));
    expect(await detached(`process.kill(process.pid, "SIGKILL")`, "activate")).toEqual([
      1,
      "it ended without any output: see `journalctl -u 'portico-activation-*'`\n",
    ]);
  });

  test("what an earlier one said without being heard is shown once", async () => {
    const begun = (pid: number) => `${JSON.stringify({ pid, command: "activate", since: "then" })}\n`;
    const [GONE, said, end] = [4_194_303, '{"out":"a\\n"}\n{"err":"b\\n"}\n', '{"exit":3}\n'];
    host.write(`${RECORDS}/${GONE}-a.record`, begun(GONE) + said + end);
    host.write(`${RECORDS}/${GONE}-b.record`, begun(GONE) + said);
    // Still running; followed by another process; nothing said yet; something else.
    host.write(`${RECORDS}/${GONE}-c.record`, begun(process.pid) + said);
    host.write(`${RECORDS}/${process.pid}-d.record`, begun(GONE) + said);
    host.write(`${RECORDS}/${GONE}-e.record`, "");
    host.write(`${RECORDS}/boot.text`, begun(GONE) + said);
    // Its caller was gone before it ended.
    host.write(`${RECORDS}/boot.record`, begun(process.pid) + said + end);
    const shown = (await detached("say({ exit: 0 });", "activate")) as string[];
    const heading = "complete output of the activate that began at then:\n";
    expect(shown.join("").split(heading).sort()).toEqual([
      "0",
      "a\nb\nit ended with status 3\n",
      "a\nb\nit ended with status 3\n",
      "a\nb\nit was cut off\n",
    ]);
    const left = [`${GONE}-c.record`, `${GONE}-e.record`, `${process.pid}-d.record`, "boot.text"];
    expect(host.below(RECORDS)).toEqual(left.sort());
  });
});

test("where the host's own Node is lost with the runtime, each fix begins with Node", async () => {
  const node = "/opt/portico/node";
  host.write(node, "node", 0o755);
  const unit = { role: "unit", content: `[Service]\nExecStart=${node} ${RUNTIME} serve\n` } as const;
  await activated({ ...one, [`${UNITS}/portico.service`]: unit });
  const fixOfRuntime = async (): Promise<unknown> =>
    ((await drift()) as SeenDrift["drift"]).files.find(({ at }) => at === RUNTIME)?.fix;
  rmSync(host.at(RUNTIME));
  const again = "NODE /root/entry.js activate --again";
  expect(await fixOfRuntime()).toMatch(/^\S+( \S+)? activate --again$/);
  rmSync(host.at(node));
  expect(await fixOfRuntime()).toBe(`install -D -m 0755 NODE ${node}, then ${again}`);
});

test("the command of a deployment runs by its programs, as far as it has some", async () => {
  const node = "/usr/lib/portico/node";
  await activated({ ...one, [node]: { role: "node", mode: "0755", content: "node" } });
  expect(host.read(`${STORE}/programs`)).toBe(`${node}\n${RUNTIME}\n`);
  const { [RUNTIME]: _runtime, ...rest } = one;
  await activated(rest);
  expect(plain(host.read(`${STORE}/programs`))).toBe("NODE\n/root/entry.js\n");
  // From here on nobody can tell which runtime should run.
  expect(((await drift()) as SeenDrift["drift"]).running).toBeUndefined();
});

describe("the command line", () => {
  const RECORD = "/run/record";
  beforeEach(() => rmSync(host.at("/run/portico-activation"), { recursive: true, force: true }));
  afterEach(() => rmSync(host.at(RECORD), { force: true }));
  const recorded = (...args: string[]): Promise<Printed> => host.cli(...args, "--record", RECORD);
  /** What was started as a unit. */
  const started = (): string[] =>
    host
      .calls()
      .flatMap((call) => (call.startsWith("systemd-run") ? call.split(" -- ").slice(1) : []))
      .map((call) => call.replace(process.execPath, "NODE").replace(/--record \S+$/, "--record FILE"));

  test("a run that changes the host goes on by itself, and is repeated; a dry run does not", async () => {
    host.deliver(one, UNPROBED);
    const planned = await host.portico("activate", "--incoming", INCOMING, "--dry-run");
    expect([planned.code, planned.out.split("\n").slice(3, 6), started()]).toEqual([
      0,
      ["will start portico.socket: it does not run", "systemctl stop web.service", "write files"],
      [],
    ]);
    const { code, out, err } = await host.portico("activate", "--incoming", INCOMING);
    expect({ code, out }).toEqual({ code: 0, out: `${planned.out}activated\n` });
    expect(err).toBe(planned.err);
    expect(started()).toEqual([`NODE /root/entry.js activate --incoming ${INCOMING} --record FILE`]);
    host.write("/run/rules-inet-portico", `${TABLE}\n`);
    const gone = await host.portico("deactivate");
    expect([gone.code, gone.out.split("\n").slice(-3), gone.err]).toEqual([
      0,
      ["systemctl start web.service", "the deployment is gone", ""],
      "",
    ]);
    expect(started()).toEqual([`${STORE}/run/node ${STORE}/run/portico.mjs deactivate --record FILE`]);
    expect(host.exists("/run/portico-activation")).toBe(false);
  });

  test("what is recorded: who runs which command, each piece of output, and the end", async () => {
    await activated(one);
    host.deliver({ ...one, [CONFIG]: two[CONFIG]! }, UNPROBED);
    host.write("/run/units/portico.service.reload", "exit 1");
    host.write("/run/units/portico.service.restart", "exit 3");
    const { code, out, err } = await recorded("activate", "--incoming", INCOMING);
    const problem = (command: string, status: number): string =>
      `systemctl ${command} portico.service: failed with status ${status}:  [activation.command-failed]
    fix:      Resolve the command's error, which the message gives.
    see:      cdktf-portico/docs/errors.md#activationcommand-failed
`;
    expect([code, err]).toEqual([
      1,
      `${problem("reload", 1)}not activated, and these steps of the roll-back failed:\n${problem("restart", 3)}`,
    ]);
    const [begun, ...entries] = host
      .read(RECORD)
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as object);
    expect(begun).toEqual({
      pid: expect.any(Number),
      command: "activate",
      since: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    });
    expect(entries).toEqual([
      ...out
        .split(/(?<=\n)(?! )/)
        .flatMap((text) => text.split(/(?<=\n)(?= {2}\/)/))
        .map((text) => ({ out: text })),
      { err },
      { exit: 1 },
    ]);
    expect(statSync(host.at(RECORD)).mode & 0o7777).toBe(0o600);
    host.deliver({ ...one, [CONFIG]: two[CONFIG]! }, UNPROBED);
    const asJson = await host.cli("activate", "--incoming", INCOMING, "--json", "--record", "/none/record");
    expect([asJson.code, JSON.parse(asJson.out)]).toMatchObject([
      1,
      {
        ok: false,
        rolledBack: true,
        problems: ["reload", "restart"].map((command) => ({ path: `systemctl ${command} portico.service` })),
      },
    ]);
  });

  test("what recover has done", async () => {
    const killed = (command: string): void =>
      host.write(`/run/units/portico.service.${command}`, "kill -9 $PPID");
    killed("start");
    host.deliver(one, UNPROBED);
    await host.cutOff("activate", { incoming: INCOMING });
    rmSync(host.at("/run/units/portico.service.start"));
    const back = await recorded("recover");
    expect([back.code, back.out.split("\n").slice(-3), back.err]).toEqual([
      0,
      ["systemctl start web.service", "the host is as it was before", ""],
      "",
    ]);
    await activated(one);
    for (const [args, end] of [
      [[], "the deployment is gone\n"],
      [["--json"], '{\n  "ok": true,\n  "recovered": "deactivation",\n  "problems": []\n}\n'],
    ] as const) {
      killed("stop");
      await host.cutOff("deactivate", {});
      rmSync(host.at("/run/units/portico.service.stop"));
      const { code, out } = await recorded("recover", ...args);
      expect([code, out.slice(-end.length)]).toEqual([0, end]);
      await activated(one);
    }
    // What cannot be done fails it.
    killed("stop");
    await host.cutOff("deactivate", {});
    rmSync(host.at("/run/units/portico.service.stop"));
    host.write("/run/units/portico.service.disable", "exit 1");
    const { code, out } = await recorded("recover", "--json");
    expect([code, JSON.parse(out)]).toMatchObject([
      1,
      { ok: false, recovered: "deactivation", problems: [{ path: "systemctl disable portico.service" }] },
    ]);
  });

  test("doctor looks at what was activated only for the host's own deployment", async () => {
    await activated(one);
    host.write(CONFIG, host.read(CONFIG).replace("}", " }"));
    chmodSync(host.at(STORE), 0o750);
    host.write("/root/other.json", host.read("/etc/portico/deployment.json"));
    const activation = async (...args: string[]): Promise<unknown> => {
      const { out } = await host.cli("doctor", "--json", "--timeout", "1", ...args);
      const { rows } = JSON.parse(out) as { rows: { id: string; status: string }[] };
      return rows.find(({ id }) => id === "activation")?.status;
    };
    expect(await activation()).toBe("failed");
    expect(await activation("--elsewhere")).toBe("unknown");
    expect(await activation("--deployment", "/root/other.json")).toBe("unknown");
  });
});

test("doctor says what keeps the logs from being rotated", async () => {
  const [program, cron] = ["/usr/sbin/logrotate", "/etc/cron.daily/logrotate"];
  for (const file of [program, cron]) rmSync(host.at(file), { force: true });
  await activated({ ...one, "/etc/logrotate.d/portico": { role: "other", content: "" } });
  const rotation = async (): Promise<unknown> => {
    const { out } = await host.cli("doctor", "--json", "--timeout", "1");
    const { rows } = JSON.parse(out) as { rows: DiagnosisRow[] };
    const { status, evidence, fix } = rows.find(({ id }) => id === "rotation")!;
    return [status, ...evidence, ...(fix === undefined ? [] : [fix])];
  };
  const failed = (seen: string): string[] => [
    "failed",
    `logrotate.timer: ${seen}`,
    "systemctl unmask logrotate.timer; systemctl enable --now logrotate.timer",
  ];
  expect(await rotation()).toEqual([
    "failed",
    `${program}: does not exist`,
    expect.stringContaining("apt-get install --reinstall logrotate"),
  ]);
  host.write(program, "#!/bin/sh\n", 0o755);
  expect(await rotation()).toEqual(failed("is inactive: nothing starts logrotate"));
  host.write(cron, "");
  expect(await rotation()).toEqual(["ok"]);
  host.state("logrotate.timer", "active");
  expect(await rotation()).toEqual(failed("does not start with the host"));
  host.write("/run/units/logrotate.timer.links", "enabled");
  expect(await rotation()).toEqual(["ok"]);
  for (const file of [program, cron]) rmSync(host.at(file));
});

describe("the lock of the host", () => {
  const busy = async (env: object = {}): Promise<unknown> => {
    host.deliver(one, UNPROBED);
    const { problems } = await host.activate({}, { env });
    return problems?.map(({ code, path, message }) => [code, path, message]);
  };
  const flock = (script: string): void => host.write("usr/local/sbin/flock", `#!/bin/sh\n${script}\n`, 0o755);
  afterEach(() => rmSync(host.at("usr/local/sbin/flock"), { force: true }));

  test("needs flock, and says what keeps it from working", async () => {
    const at = ["activation.busy", "/var/lib/portico/lock"];
    flock("echo ' bad descriptor ' >&2; exit 1");
    expect(await busy()).toEqual([[...at, "flock: bad descriptor"]]);
    flock("exit 5");
    expect(await busy()).toEqual([[...at, "flock: "]]);
    expect(await busy({ PATH: "/none" })).toEqual([[...at, "flock cannot be started: spawn flock ENOENT"]]);
  });

  test("is taken by a program that a Ctrl-C does not reach", async () => {
    flock(`read -r _ _ _ _ group _ < /proc/$$/stat
[ $group = $$ ] || { echo "in group $group" >&2; exit 1; }
exec /usr/bin/flock "$@"`);
    expect(await busy()).toBeUndefined();
  });
});

/** A command that runs what follows it with another, small `/run`. */
const SMALL_RUN = [
  ...["unshare", "--mount", "sh", "-euc"],
  `mount -t tmpfs -o size=256k tmpfs "$2/run"
mkdir -p "$2/run/systemd/system" "$2/run/units"
echo active > "$2/run/units/web.service"
exec "$@"`,
  "sh",
];

test.each<[role: FileRole, problems: string[] | undefined]>([
  ["tls", ["activation.no-room /run"]],
  ["page", undefined],
  ["runtime", undefined],
  ["other", undefined],
])("a file with the role %s that is larger than what is left of /run: %j", async (role, expected) => {
  host.deliver({ ...one, "/etc/portico/large": { role, content: "x".repeat(300_000) } }, UNPROBED);
  const asked = async () => (await host.activate({ dryRun: true })).problems;
  const problems = await host.by(asked, undefined, SMALL_RUN);
  expect(problems?.map(({ code, path }) => `${code} ${path}`)).toEqual(expected);
});

test("a host without IPv6: listeners that need it are refused, where they are opened or asked", async () => {
  const config = { ...siteConfig({ mode: "tls", ipv6: "2001:db8::10" }), timeouts: { keepAliveMs: 1001 } };
  const files: SiteFiles = { ...one, [CONFIG]: { role: "config", content: JSON.stringify(config) } };
  const refused = async (delivered: SiteFiles, probe: boolean): Promise<unknown> => {
    host.deliver(delivered, { services: SERVICES, probe: { enabled: probe } });
    const { problems } = await host.activate({ dryRun: true });
    return problems?.map(({ code, path, message }) => [code, path, message]);
  };
  await host.by(
    async () => {
      const off = [80, 443].map((port) => [
        "activation.no-ipv6",
        `[2001:db8::10]:${port}`,
        "is an IPv6 address, but IPv6 is disabled on this host",
      ]);
      expect(await refused(files, false)).toEqual(off);
      expect(await refused(one, true)).toBeUndefined();
      // Systemd has opened its sockets already.
      await activated(one);
      expect(await refused(files, true)).toEqual(off);
      expect(await refused(files, false)).toBeUndefined();
    },
    undefined,
    ["unshare", "--net"],
  );
  expect(await refused(files, true)).toBeUndefined();
  await activated(files);
  await host.by(
    async () => {
      // Nothing is started, and so nothing is opened.
      expect(await refused(files, false)).toBeUndefined();
    },
    undefined,
    ["unshare", "--net"],
  );
});

test("a directory of a static route that others cannot read is told of, and stays as it is", async () => {
  const image = "/opt/sync/media/a.png";
  host.write(image, "x", 0o600);
  chmodSync(host.at(image), 0o600);
  host.deliver(one, UNPROBED);
  const { value } = await host.activate({ dryRun: true });
  expect(value.warnings.map(({ code, path, message, fix }) => [code, path, message, fix])).toContainEqual([
    "files.unreadable",
    image,
    "is served, but other users have no read permission",
    `chmod o+r '${image}'`,
  ]);
  expect(statSync(host.at(image)).mode & 0o7777).toBe(0o600);
});

test("an image that the activation requests, and others cannot read, is named before anything is started", async () => {
  const [media, image] = ["/opt/sync/media", "/opt/sync/media/icons/a.png"];
  rmSync(host.at(media), { recursive: true, force: true });
  host.write(image, "x");
  chmodSync(host.at(image), 0o600);
  const probed = (more: object = {}): Partial<DeploymentInput> => ({
    services: SERVICES,
    expect: siteExpect({ mode: "tls", host: "files.example.org" }),
    trees: fileSyncTrees({ directory: media }, false),
    ...more,
  });
  const unreadable = async (more?: object): Promise<unknown> => {
    host.deliver(one, probed(more));
    const { problems, threw } = await host.activate({ dryRun: true });
    expect(threw).toBeUndefined();
    return problems?.map(({ code, path, fix }) => [code, path, fix]);
  };
  const fix = `chmod -R o+rX ${media}, or have the activation do so: \`fixMedia: true\``;
  expect(await unreadable()).toEqual([["files.unreadable", image, fix]]);
  // What the activation itself repairs, or does not ask for, is no obstacle.
  expect(await unreadable({ trees: fileSyncTrees({ directory: media }, true) })).toBeUndefined();
  expect(await unreadable({ probe: { enabled: false } })).toBeUndefined();
  // A path that no file can have is for the request itself to find out.
  for (const imagePath of ["icons/100%.png", "../../etc/passwd"])
    expect(await unreadable({ probe: { imagePath } })).toBeUndefined();
  chmodSync(host.at(image), 0o644);
  chmodSync(host.at("/opt/sync/media/icons"), 0o700);
  expect(await unreadable()).toEqual([["files.unreadable", "/opt/sync/media/icons", fix]]);
  chmodSync(host.at("/opt/sync/media/icons"), 0o755);
  chmodSync(host.at("/opt/sync"), 0o700);
  expect(await unreadable()).toEqual([["files.unreadable", "/opt/sync", "chmod o+rx '/opt/sync'"]]);
  chmodSync(host.at("/opt/sync"), 0o755);
  // The application's later changes of a directory that is served already are no veto.
  await activated(one, { ...probed(), probe: { enabled: false } });
  chmodSync(host.at(image), 0o600);
  expect(await unreadable()).toBeUndefined();
  rmSync(host.at(media), { recursive: true });
});

test("the application's settings and media are changed, restored after a failure, and undone", async () => {
  const conf = "/opt/sync/conf";
  const paths = {
    networkDaemon: `${conf}/network.conf`,
    webApplication: `${conf}/web_settings.py`,
    fileServer: `${conf}/fileserver.conf`,
  };
  const texts = ["[General]\nID = 1\n", "SECRET_KEY = 'x'\n\nDATABASES = {}\n", "[fileserver]\nport = 1\n"];
  Object.values(paths).forEach((file, i) => host.write(file, texts[i]!));
  const image = "/opt/sync/media/a.png";
  host.write(image, "x", 0o600);
  chmodSync(host.at(image), 0o600);
  for (const unit of ["files.service", "web.service"]) host.state(unit, "active");
  const more = (name: string): Partial<DeploymentInput> => ({
    ...UNPROBED,
    services: { ...SERVICES, daemons: daemonsOf({ ...DAEMONS, fileServer: "files.service" }) },
    settings: {
      files: wantedFiles(paths, { origins: [{ scheme: "https", host: name, port: 443 }] }),
      apply: true,
    },
    trees: fileSyncTrees({ directory: "/opt/sync/media" }, true),
  });
  const now = (): unknown => [
    ...Object.values(paths).map((file) => host.read(file)),
    (statSync(host.at(image)).mode & 0o7777).toString(8),
  ];
  const before = now();
  const undone = [
    `  ${paths.fileServer}: Portico's changes are undone`,
    `  ${paths.webApplication}: Portico's changes are undone`,
    `  ${paths.networkDaemon}: Portico's changes are undone`,
    `  ${image}: mode 0600 instead of 0604`,
  ];
  const ofApplication = (lines: readonly string[]): unknown =>
    lines.filter((line) => /^(?!will ).*(?:\/opt\/|files\.service|web\.service$|failed)/.test(line));
  host.write("/run/units/portico.service.start", "exit 1");
  host.deliver(one, more("a.example.org"));
  const failed = await host.activate();
  expect(ofApplication(failed.lines.map((line) => line.split("\n")[0]!))).toEqual([
    "systemctl stop web.service",
    "systemctl stop files.service",
    ...Object.values(paths)
      .toReversed()
      .map((file) => `  ${file}: application settings`),
    `  ${image}: mode 0604 instead of 0600`,
    "systemctl start files.service",
    "systemctl start web.service",
    "failed: systemctl start portico.service: failed with status 1:  [activation.command-failed]",
    "systemctl stop web.service",
    "systemctl stop files.service",
    ...undone,
    "systemctl start files.service",
    "systemctl start web.service",
  ]);
  expect(now()).toEqual(before);
  rmSync(host.at("/run/units/portico.service.start"));
  await activated(one, more("a.example.org"));
  const first = now();
  expect(first).toEqual([
    expect.stringContaining("https://a.example.org/sync"),
    expect.stringContaining("https://a.example.org/synchttp"),
    expect.stringContaining("port = 8082"),
    "604",
  ]);
  // Only the host in the URLs changes: the file server goes on until it has its new settings (service 2.7).
  host.deliver(one, more("b.example.org"));
  const renamed = await host.activate();
  expect(ofApplication(renamed.lines)).toEqual([
    "systemctl stop web.service",
    `  ${paths.webApplication}: application settings`,
    `  ${paths.networkDaemon}: application settings`,
    "systemctl restart files.service",
    "systemctl start web.service",
  ]);
  const gone = await host.call("deactivate");
  expect(ofApplication(gone.lines)).toEqual([
    "systemctl stop web.service",
    "systemctl stop files.service",
    ...undone,
    "systemctl start files.service",
    "systemctl start web.service",
  ]);
  expect(now()).toEqual(before);
});

test("the programs of a deactivation outlive what is installed", async () => {
  const running = (await host.call<string[]>("lastingPrograms")).value;
  expect(plain(running)).toEqual(["NODE", "/root/entry.js"]);
  await activated(one);
  const lasting = (await host.call<string[]>("lastingPrograms")).value;
  expect(lasting).toEqual([`${STORE}/run/node`, `${STORE}/run/portico.mjs`]);
  expect(statSync(host.at(`${STORE}/run`)).mode & 0o7777).toBe(0o700);
  expect(host.read(lasting[1]!)).toBe(host.read("/root/entry.js"));
  // A program on another file system is copied; what runs from the store's own file system stays where it is.
  const folder = mkdtempSync(join(tmpdir(), "portico-programs-"));
  const elsewhere = join(folder, "entry.mjs");
  writeFileSync(elsewhere, `${host.read("/root/entry.js")}// elsewhere\n`, { mode: 0o755 });
  const asked = async (): Promise<string[]> => (await host.call<string[]>("lastingPrograms")).value;
  expect(await host.by(asked, elsewhere)).toEqual(lasting);
  expect(host.read(lasting[1]!)).toContain("// elsewhere\n");
  expect(statSync(host.at(lasting[1]!)).mode & 0o7777).toBe(0o700);
  rmSync(folder, { recursive: true });
  // Only if both programs are there already are they run from there.
  const there = `${INCOMING}/entry.mjs`;
  host.write(there, host.read("/root/entry.js"));
  expect(await host.by(asked, there)).toEqual(lasting);
  expect(await host.by(asked, there, [], lasting[0])).toEqual([lasting[0], there]);
  expect(existsSync(host.at(lasting[0]!))).toBe(true);
});
