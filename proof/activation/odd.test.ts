import { bootUnit, openStore } from "../../src/host/activation/store.js";
import { canDetach } from "../../src/host/activation/index.js";
import { foreignDirectories, isOfUnit } from "../../src/host/activation/preconditions.js";
import { statusOf } from "../../src/host/activation/systemctl.js";
import { shownUnit } from "../../src/host/diagnosis/system/shownUnits.js";
import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { admits } from "../../src/host/activation/stagedCheck.js";
import {
  formatMode,
  makeModes,
  mergeModes,
  planModes,
  undoModes,
} from "../../src/host/activation/treeModes.js";
import type { Deployment, ProblemError } from "../../src/model/index.js";
import { CONFIG, sha256, Site, siteFiles } from "./site.js";

test.each<[string, string, boolean, string?]>([
  ["active", "running", true],
  ["reloading", "reload", true],
  ["activating", "start", true],
  // It died, and systemd waits until it starts it again: a reload would be refused, and nobody serves.
  ["activating", "auto-restart", false],
  ["activating", "auto-restart-queued", false],
  ["inactive", "dead", false],
  ["failed", "failed", false],
  // Such as a doctor at work: it does not run on, so there is nothing to restart.
  ["activating", "start", false, "oneshot"],
])("a unit that is %s (%s) runs: %s", (state, sub, active, type = "notify") => {
  const shown = `Type=${type}\nLoadState=loaded\nActiveState=${state}\nSubState=${sub}\nUnitFileState=enabled`;
  expect(statusOf(shownUnit("a.service", shown))).toEqual({
    known: true,
    masked: false,
    active,
    unsettled: state === "activating",
    failed: state === "failed",
    enabled: true,
  });
});

test("permissions of media: only missing ones, over several activations, and back to what they were before the first", async () => {
  const site = new Site();
  try {
    const directory = site.at("/opt/sync/media");
    const modes = (): Record<string, string> =>
      Object.fromEntries(
        ["a.png", "b.png", "c.png"]
          .filter((name) => existsSync(path.join(directory, name)))
          .map((name) => [name, (statSync(path.join(directory, name)).mode & 0o7777).toString(8)]),
      );
    chmodSync(site.root, 0o755);
    site.write("/opt/sync/media/a.png", "x", 0o600);
    site.write("/opt/sync/media/b.png", "x", 0o640);
    const deployment = (fix: boolean) => ({ trees: [{ path: directory, fix }] }) as unknown as Deployment;
    expect((await planModes(deployment(false))).changes).toEqual([]);
    const first = (await planModes(deployment(true))).changes;
    expect(first.map(formatMode)).toEqual([
      `${directory}/a.png: mode 0604 instead of 0600`,
      `${directory}/b.png: mode 0644 instead of 0640`,
    ]);
    const lines: string[] = [];
    const report = (line: string): void => void lines.push(line);
    await makeModes(first, report);
    expect((await planModes(deployment(true))).changes).toEqual([]);
    // A later generation: one that is new, one that somebody has closed again.
    site.write("/opt/sync/media/c.png", "x", 0o400);
    chmodSync(site.at("/opt/sync/media/b.png"), 0o600);
    const second = (await planModes(deployment(true))).changes;
    rmSync(site.at("/opt/sync/media/c.png"));
    await makeModes(second, report);
    expect(lines.splice(0)).toEqual([
      `  ${directory}/a.png: mode 0604 instead of 0600`,
      `  ${directory}/b.png: mode 0644 instead of 0640`,
      `  ${directory}/b.png: mode 0604 instead of 0600`,
      expect.stringMatching(/^ {2}.*\/c\.png: mode 0404 instead of 0400: not changed, \S/),
    ]);
    site.write("/opt/sync/media/c.png", "x", 0o400);
    await makeModes(second, () => undefined);
    expect(modes()).toEqual({ "a.png": "604", "b.png": "604", "c.png": "404" });
    chmodSync(site.at("/opt/sync/media/c.png"), 0o444);
    await undoModes(mergeModes(first, second), report);
    expect(modes()).toEqual({ "a.png": "600", "b.png": "600", "c.png": "444" });
    expect(lines).toEqual([
      `  ${directory}/c.png: mode 0400 instead of 0404: stays, its permissions were changed meanwhile`,
      `  ${directory}/b.png: mode 0600 instead of 0604`,
      `  ${directory}/a.png: mode 0600 instead of 0604`,
    ]);
  } finally {
    site.remove();
  }
});

test.each<[string, string, string[], boolean]>([
  ["812", "0::/system.slice/web.service\n", ["a.service", "web.service"], true],
  ["812", "1:cpu:/\n0::/system.slice/web.service/worker\n", ["web.service"], true],
  ["812", "0::/system.slice/web.service2\n", ["web.service"], false],
  ["812", "0::/system.slice/other-web.service\n", ["web.service"], false],
  ["812", "0::/system.slice/web.service\n", [], false],
  ["812", "0::/user.slice/user-1.slice/user@1.service/app.slice/web.service\n", ["web.service"], false],
  ["1", "0::/init.scope\n", ["a.service", "a.socket"], true],
  ["1", "0::/init.scope\n", ["a.service", "a.socket.service"], false],
])("whether process %s in %j is of one of %j: %s", (pid, groups, units, expected) => {
  expect(isOfUnit(pid, groups, units)).toBe(expected);
});

describe("the store", () => {
  const site = new Site();
  afterAll(() => site.remove());
  const store = openStore(site.root);
  const [node, runtime] = ["/my node", "/my 'runtime'.mjs"].map((name) => site.at(name)) as [string, string];
  beforeEach(async () => {
    await store.prepare();
    const responses = `case "$*" in --version) echo v24.0.0 ;; *--version) echo "portico 0.1.0" ;; *) printf "%s|" "$@" ;; esac`;
    site.write("/my node", `#!/bin/sh\n${responses}\n`, 0o755);
    site.write("/my 'runtime'.mjs", "// runtime");
    await store.writeCommand([node, runtime]);
  });
  const mode = (name: string): string => (statSync(store.at(name)).mode & 0o7777).toString(8);

  test("has a command, which runs its programs with what it is given, for its owner alone", () => {
    expect(execFileSync(store.at("command"), ["a b", ""], { encoding: "utf8" })).toBe(`${runtime}|a b||`);
    expect(["command", "programs", ".", "blobs"].map(mode)).toEqual(["700", "600", "700", "700"]);
  });

  test.each<[string, () => void, boolean]>([
    ["as it was written", () => undefined, true],
    ["not to be executed", () => chmodSync(store.at("command"), 0o655), false],
    ["another one", () => appendFileSync(store.at("command"), "\n"), false],
    ["gone", () => rmSync(store.at("command")), false],
    ["without its programs", () => rmSync(store.at("programs")), false],
    ["with one more program", () => appendFileSync(store.at("programs"), `${node}\n`), false],
    ["with one program less", () => writeFileSync(store.at("programs"), `${node}\n`), false],
    ["whose runtime is gone", () => rmSync(runtime), true],
    ["whose Node is gone", () => rmSync(node), true],
  ])("knows the programs of its command, if it is as it was written: %s", async (_what, change, expected) => {
    change();
    expect(await store.commandPrograms()).toEqual(expected ? [node, runtime] : undefined);
  });

  test("keeps a content that is what it should be, and only that", async () => {
    const [wanted, other] = ["wanted", "other"].map(sha256) as [string, string];
    site.write("/source", "wanted");
    await store.keep(site.at("/source"), wanted);
    expect([await store.has(wanted), await store.has(other), mode(`blobs/${wanted}`)]).toEqual([
      true,
      false,
      "600",
    ]);
    // It was changed since its hash was taken; what is there already is not copied once more.
    await expect(store.keep(site.at("/source"), other)).rejects.toMatchObject({
      problems: [
        {
          code: "activation.file-failed",
          path: site.at("/source"),
          message: "changed while it was copied",
          fix: "Try again.",
        },
      ],
    });
    await store.keep(site.at("/none"), wanted);
    site.write(`/var/lib/portico/deployment/blobs/${wanted}`, "damaged");
    await store.keep(site.at("/source"), wanted);
    expect(await store.has(wanted)).toBe(true);
  });
});

const V4 = "192.0.2.7";
const V6 = "2001:db8::7";

test.each<[string, string, boolean]>([
  ["tcp dport { 22, 80, 443 } accept", V4, true],
  ["tcp dport 22 accept", V6, true],
  ['  tcp dport 22 counter accept comment "ssh"', V4, true],
  ['iifname "eth0" tcp dport 22 accept', V4, true],
  ["tcp dport { 80, 443 } accept", V4, false],
  ["tcp dport 2222 accept", V4, false],
  ["tcp dport 22 accept # for all", V4, true],
  ["tcp dport 80 accept # tcp dport 22 accept", V4, false],
  ["tcp dport 22 drop # not accept", V4, false],
  ["skip saddr 203.0.113.1 tcp dport 22 accept", V4, true],
  ["tcp dport 22 drop", V4, false],
  ["# tcp dport 22 accept", V4, false],
  ["udp dport 22 accept", V4, false],
  // Another source than the session's.
  ["ip saddr 203.0.113.0/24 tcp dport 22 accept", V4, false],
  ["ip saddr 192.0.2.0/24 tcp dport 22 accept", V4, true],
  ["ip saddr 192.0.2.7 tcp dport 22 accept", V4, true],
  ["ip saddr { 203.0.113.1, 192.0.2.1-192.0.2.9 } tcp dport 22 accept", V4, true],
  ["ip saddr { 203.0.113.1, 192.0.2.8 } tcp dport 22 accept", V4, false],
  ["ip saddr != 192.0.2.7 tcp dport 22 accept", V4, false],
  ["ip saddr != 203.0.113.1 tcp dport 22 accept", V4, true],
  ["ip saddr 192.0.2.7 tcp dport 22 accept", V6, false],
  ["ip6 saddr 2001:db8::/64 tcp dport 22 accept", V6, true],
  ["ip6 saddr 2001:db8:1::/64 tcp dport 22 accept", V6, false],
  ["ip saddr $office tcp dport 22 accept", V4, false],
  ["ip saddr != { 203.0.113.1, 192.0.2.7 } tcp dport 22 accept", V4, false],
  ["ip saddr != 203.0.113.1 tcp dport 22 accept", V6, false],
  ["ip6 saddr != 2001:db8:1::1 tcp dport 22 accept", V4, false],
  ["ip6 saddr { 2001:db8::1-2001:db8::9 } tcp dport 22 accept", V6, true],
  ["ip6 saddr 2001:db8::7 tcp dport 22 accept", V6, true],
])("the rule `%s` lets %s in to port 22: %s", (rule, client, expected) => {
  expect(admits(`table inet t {\n\t${rule}\n}\n`, client, "22")).toBe(expected);
});

test("a user other than root cannot change the host", () => {
  process.seteuid!(65_534);
  try {
    expect(() => openStore("/")).toThrow(
      expect.objectContaining({
        problems: [
          expect.objectContaining({
            code: "activation.not-root",
            path: "",
            message: "only root can change the host",
          }),
        ],
      }),
    );
    expect(canDetach("/")).toBe(false);
  } finally {
    process.seteuid!(0);
  }
});

describe("deployed files are below directories that only root can change:", () => {
  const site = new Site();
  afterAll(() => site.remove());
  const made = (name: string, uid: number, mode: number): void => {
    mkdirSync(site.at(name), { recursive: true });
    chownSync(site.at(name), uid, 0);
    chmodSync(site.at(name), mode);
  };

  test.each<[string, () => void, string, RegExp | undefined]>([
    ["root's own", () => made("own", 0, 0o755), "own/below/file", undefined],
    ["one that is not there yet", () => undefined, "none/file", undefined],
    ["another user's", () => made("his", 1234, 0o755), "his/file", /is below a directory of user 1234/],
    ["below another user's", () => made("his/root", 0, 0o755), "his/root/file", /directory of user 1234/],
    [
      "one that a group may change",
      () => made("shared", 0, 0o775),
      "shared/file",
      /shared, which belongs to root, but/,
    ],
    [
      "one that everyone can add to",
      () => made("sticky", 0, 0o1777),
      "sticky/new/file",
      /every user may put files/,
    ],
    [
      "a link to another user's",
      () => symlinkSync(site.at("his"), site.at("link")),
      "link/file",
      /directory of user 1234/,
    ],
  ])("%s", async (_what, make, name, why) => {
    make();
    const problems = await foreignDirectories([site.at(name)]);
    expect(problems).toEqual(
      why === undefined
        ? []
        : [
            expect.objectContaining({
              code: "files.shared-directory",
              path: site.at(name),
              message: expect.stringMatching(why),
            }),
          ],
    );
  });
});

test("the unit for a boot: with these programs, after the boot's own jobs, and only while a journal is open", () => {
  expect(bootUnit(["/usr/lib/my portico/node", "/run/portico.mjs"], ["web.service"])).toBe(`[Unit]
Description=portico finishes or undoes an activation that was cut off
ConditionPathExists=/var/lib/portico/deployment/journal.json
RequiresMountsFor=/var/lib/portico/deployment
After=network.target remote-fs.target web.service
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart="/usr/lib/my portico/node" /run/portico.mjs recover --record /run/portico-activation/boot.record
RuntimeDirectory=portico-activation
RuntimeDirectoryMode=0700
RuntimeDirectoryPreserve=yes
Restart=on-abnormal
RestartSec=1
OOMScoreAdjust=-900
KillMode=mixed
TimeoutStopSec=900

[Install]
WantedBy=multi-user.target
`);
});

test("a value that only Terraform knew is refused before anything is changed, together with the config", async () => {
  const site = new Site();
  try {
    const files = await siteFiles("1");
    const bad = { ...files, [CONFIG]: { role: "config" as const, content: '{"version":1,"workers":0}' } };
    const late = {
      path: "stack/firewall.ports[0]",
      code: "config.out-of-range" as const,
      message: "is out of range",
      fix: "Use a value in the allowed range.",
      value: 0,
      rule: { minimum: 1, maximum: 65_535 },
    };
    site.deliver(bad, { lateValues: [late] });
    const { problems } = await site.activate().then(
      () => ({ problems: [] }),
      (error: ProblemError) => error,
    );
    expect(problems.map(({ path, code }) => [path, code])).toEqual(
      expect.arrayContaining([
        ["workers", "config.out-of-range"],
        [late.path, late.code],
      ]),
    );
    expect(Object.keys(files).filter((file) => existsSync(site.at(file)))).toEqual([]);
    site.deliver(files, { lateValues: [{ ...late, value: 80 }] });
    await site.activate();
    expect(existsSync(site.at(CONFIG))).toBe(true);
  } finally {
    site.remove();
  }
});
