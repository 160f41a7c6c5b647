import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  closeSync,
  cpSync,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  utimesSync,
} from "node:fs";
import path from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import {
  ActivationFailed,
  editByHand,
  formatPlan,
  planByHand,
  recoverHost,
} from "../../src/host/activation/index.js";
import {
  type DeploymentInput,
  type Problem,
  ProblemError,
  type ProxyConfigInput,
} from "../../src/model/index.js";
import { applicationSettingsFiles, applicationSettingsValues } from "../../src/applications/index.js";
import type { SettingsSource } from "../../src/host/applicationSettings/index.js";
import { siteConfig } from "../../testkit/siteConfig.js";
import { blobsOf, CONFIG, document, KEY, sha256, Site, type SiteFiles, siteFiles } from "./site.js";
import { nextEvent } from "../../testkit/waiting.js";

/** Activation on a folder: files only, the real file system. */
let site: Site;
let one: SiteFiles;
let two: SiteFiles;

beforeAll(async () => {
  one = await siteFiles("1");
  two = await siteFiles("the second");
});
beforeEach(() => {
  site = new Site();
});
afterEach(() => site.remove());

async function problemsOf(act: Promise<unknown>): Promise<readonly Problem[]> {
  const error = await act.then(
    () => undefined,
    (e: unknown) => e,
  );
  expect(error).toBeInstanceOf(ProblemError);
  return (error as ProblemError).problems;
}

const codes = (problems: readonly Problem[]): string[] => problems.map(({ code }) => code);
/** Who had the lock last, which those who wait are told. */
const lockOf = (s: Site): unknown => JSON.parse(s.read("/var/lib/portico/lock"));

test("files get content and mode, with nothing left next to them; a second activation has nothing to do", async () => {
  site.deliver(one);
  // Not what a delivery uploads.
  const others = [`0${sha256("")}`, `${sha256("")}0`, sha256("").toUpperCase()];
  for (const name of others) writeFileSync(path.join(site.incoming, name), "");
  const { plan } = await site.activate();
  expect(plan.steps).toEqual([{ do: "files" }]);
  for (const [file, { content, mode = "0644" }] of Object.entries(one)) {
    expect([site.read(file), statSync(site.at(file)).mode & 0o7777]).toEqual([content, parseInt(mode, 8)]);
  }
  expect(statSync(site.at("/var/lib/portico/deployment")).mode & 0o777).toBe(0o700);
  // It was had for this.
  expect(lockOf(site)).toMatchObject({ what: "activation", incoming: site.incoming });
  // Uploads were taken over, and all the store holds is for its owner alone.
  expect(readdirSync(site.incoming).sort()).toEqual([...others, "deployment.json"].sort());
  for (const blob of blobsOf(site)) {
    expect(statSync(site.at(`/var/lib/portico/deployment/blobs/${blob}`)).mode & 0o777).toBe(0o600);
  }
  const before = site.snapshot();
  expect((await site.activate()).plan).toMatchObject({ files: [], steps: [] });
  expect(site.snapshot()).toEqual(before);
  expect(Object.keys(before).filter((name) => name.includes("portico-new"))).toEqual([]);
});

test("only what changed is uploaded and written; contents of the last state need no upload", async () => {
  site.deliver(one);
  await site.activate();
  const changed = { ...one, [CONFIG]: two[CONFIG]! };
  site.deliverDocument(document(changed));
  writeFileSync(path.join(site.incoming, sha256(two[CONFIG]!.content)), two[CONFIG]!.content);
  const inodes = (): number[] => Object.keys(one).map((file) => statSync(site.at(file)).ino);
  const before = inodes();
  const { plan } = await site.activate();
  expect(plan.files.map(({ path: p, why }) => [p, why])).toEqual([
    [CONFIG, "content"],
    ["/etc/portico/deployment.json", "content"],
  ]);
  expect(inodes().filter((ino, i) => ino !== before[i])).toHaveLength(1);
  // An apply that was planned before may still need the replaced content, for a week after it was replaced.
  const replaced = sha256(one[CONFIG]!.content);
  const ageBy = (days: number): void => {
    const then = Date.now() / 1000 - days * 86_400;
    utimesSync(site.at(`/var/lib/portico/deployment/blobs/${replaced}`), then, then);
  };
  for (const [days, kept] of [
    [0, true],
    [6, true],
    [8, false],
  ] as const) {
    if (days > 0) ageBy(days);
    await site.activate();
    expect([days, blobsOf(site).includes(replaced)]).toEqual([days, kept]);
  }
});

test.each<[string, (site: Site) => void, string[]]>([
  ["content", (s) => s.write(CONFIG, "{}"), ["content"]],
  ["mode", (s) => chmodSync(s.at(KEY), 0o644), ["mode 0644 instead of 0600"]],
  ["a link in its place", (s) => symlinked(s, KEY), ["a link instead of a file"]],
  ["gone", (s) => removed(s, KEY), ["new"]],
])("manual changes are corrected: %s", async (_what, change, why) => {
  site.deliver(one);
  await site.activate();
  const good = site.snapshot();
  change(site);
  const { plan } = await site.activate();
  expect(plan.files.map((file) => file.why)).toEqual(why);
  const after = site.snapshot();
  delete after["/elsewhere"];
  expect(after).toEqual(good);
});

function removed(s: Site, file: string): void {
  rmSync(s.at(file));
}

function symlinked(s: Site, file: string): void {
  s.write("/elsewhere", "mine");
  removed(s, file);
  symlinkSync(s.at("/elsewhere"), s.at(file));
}

test("files that leave the deployment become what they were before; directories go when empty", async () => {
  site.write("/etc/motd", "before portico\n", 0o640);
  chownSync(site.at("/etc/motd"), 1234, 5678);
  const ownerOf = (name: string): unknown => {
    const { uid, gid } = statSync(site.at(name));
    return [uid, gid];
  };
  symlinkSync("motd", site.at("/etc/issue"));
  const before = site.snapshot();
  const extra: SiteFiles = {
    "/etc/issue": { role: "other", content: "portico" },
    "/etc/motd": { role: "other", content: "portico", mode: "0644" },
    "/srv/deep/er/file": { role: "other", content: "portico" },
  };
  site.deliver({ ...one, ...extra });
  await site.activate();
  expect([site.read("/etc/motd"), ownerOf("/etc/motd")]).toEqual(["portico", [0, 0]]);
  site.deliver(one);
  const { plan } = await site.activate();
  expect(plan.files.filter(({ path: p }) => p in extra).map(({ why }) => why)).toEqual([
    "a file instead of a link",
    "content, mode 0644 instead of 0640, owner 0:0 instead of 1234:5678",
    "removed",
  ]);
  expect(ownerOf("/etc/motd")).toEqual([1234, 5678]);
  for (const name of ["/etc/motd", "/etc/issue", "/srv"]) expect(site.snapshot()[name]).toBe(before[name]);
  // And deactivation leaves the host as it was found.
  expect(await site.deactivate()).toEqual([]);
  expect(site.snapshot()).toEqual(before);
  // What was uploaded the delivery removes.
  expect(readdirSync(site.at("/var/lib/portico"))).toEqual(["incoming"]);
  expect(await site.deactivate()).toBeUndefined();
});

test("a deactivation removes the link that systemd leaves of a unit's runtime directory", async () => {
  const link = site.at("/run/portico-ready");
  mkdirSync(path.dirname(link));
  symlinkSync("private/portico-ready", link);
  site.deliver(one);
  await site.activate();
  expect(await site.deactivate()).toEqual([]);
  expect(readdirSync(path.dirname(link))).toEqual([]);
});

const PAGE = "/etc/portico/pages/down.html";

/** The same with an error page, whose file is not among them. */
function withErrorPage(files: SiteFiles): SiteFiles {
  const config = JSON.parse(files[CONFIG]!.content) as ProxyConfigInput;
  const errorPages = [{ statuses: [502 as const], file: PAGE }];
  const virtualServers = config.virtualServers.map((server) => ({ ...server, errorPages }));
  return { ...files, [CONFIG]: { role: "config", content: JSON.stringify({ ...config, virtualServers }) } };
}

test("an error page comes with the deployment", async () => {
  site.deliver({ ...withErrorPage(one), [PAGE]: { role: "page", content: "<p>{{status}}" } });
  await site.activate();
  expect(site.read(PAGE)).toBe("<p>{{status}}");
});

describe("nothing is touched when", () => {
  test.each<[string, (s: Site) => void, string[]]>([
    [
      "the document is not JSON",
      (s) => writeFileSync(path.join(s.incoming, "deployment.json"), "{"),
      ["config.not-json"],
    ],
    [
      "the document is missing",
      (s) => removed(s, "/var/lib/portico/incoming/one/deployment.json"),
      ["files.unreadable"],
    ],
    [
      "the document has problems",
      (s) =>
        s.deliverDocument({
          ...document(two),
          config: "/etc/other.json",
          files: [...document(two).files].reverse(),
        }),
      [
        "config.duplicate-name",
        "config.duplicate-name",
        "config.duplicate-name",
        "config.duplicate-name",
        "config.unknown-reference",
      ],
    ],
    ["contents are missing or damaged", damage, ["activation.corrupt-blob", "activation.missing-blob"]],
    [
      "the config is refused",
      (s) => void s.deliver({ ...two, [CONFIG]: { role: "config", content: "{}" } }),
      ["config.missing-field", "config.missing-field", "config.missing-field"],
    ],
    [
      "a TLS file does not fit",
      (s) => void s.deliver({ ...two, [KEY]: { ...two[KEY]!, content: "no key" } }),
      ["files.bad-key"],
    ],
    [
      "an error page that comes with it has a placeholder of its own",
      (s) => void s.deliver({ ...withErrorPage(two), [PAGE]: { role: "page", content: "{{error}}" } }),
      ["config.bad-error-page"],
    ],
    ["an error page is nowhere", (s) => void s.deliver(withErrorPage(two)), ["files.unreadable"]],
    [
      "a file would replace a directory",
      (s) => void s.deliver({ ...two, "/opt/sync": { role: "other", content: "x" } }),
      ["activation.bad-target"],
    ],
  ])("%s", async (_what, spoil, expected) => {
    site.deliver(one);
    await site.activate();
    site.deliver(two);
    spoil(site);
    const before = site.snapshot();
    const problems = await problemsOf(site.activate());
    expect(codes(problems).sort()).toEqual(expected.sort());
    // The check works on copies; nobody is told of them.
    expect(JSON.stringify(problems)).not.toContain("staging");
    expect(site.snapshot()).toEqual(before);
    // What is amiss can be delivered again.
    site.deliver(two);
    await site.activate();
    expect(site.read(CONFIG)).toBe(two[CONFIG]!.content);
  });

  test("a dry run plans it", async () => {
    site.deliver(two);
    const before = site.snapshot();
    const { plan } = await site.activate({ dryRun: true });
    expect(plan.files.map(({ why }) => why)).toEqual(Array(6).fill("new"));
    expect(site.snapshot()).toEqual(before);
  });

  test("another activation holds the lock; one with time left waits", async () => {
    site.deliver(one);
    await site.activate();
    const lock = site.at("/var/lib/portico/lock");
    const holder = spawn("flock", [lock, "sh", "-c", "echo; exec sleep 3"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await new Promise((held) => holder.stdout.once("data", held));
    site.deliver(two);
    const before = site.snapshot();
    site.write("/var/lib/portico/lock", JSON.stringify(HOLDER));
    expect(await problemsOf(site.activate({ lockSeconds: 1 }))).toMatchObject([
      { code: "activation.busy", path: lock, message: `is still held after 1 s, by ${HELD_BY}` },
    ]);
    expect(site.lines.at(-1)).toBe(`waiting for ${HELD_BY}`);
    expect(site.snapshot()).toEqual(before);
    await site.activate();
    expect(holder.exitCode).toBe(0);
    expect(site.read(CONFIG)).toBe(two[CONFIG]!.content);
  });

  test("two deployments come at once: each gets its own outcome, in either order", async () => {
    const other = site.at("/var/lib/portico/incoming/other");
    mkdirSync(other, { recursive: true });
    for (const [files, incoming] of [
      [one, site.incoming],
      [two, other],
    ] as const) {
      for (const { content } of Object.values(files))
        writeFileSync(path.join(incoming, sha256(content)), content);
      writeFileSync(
        path.join(incoming, sha256(JSON.stringify(document(files)))),
        JSON.stringify(document(files)),
      );
    }
    const documentOf = (files: SiteFiles): string => sha256(JSON.stringify(document(files)));
    const outcomes = await Promise.all([
      site.activate({ document: documentOf(one) }),
      site.activate({ incoming: other, document: documentOf(two) }),
    ]);
    expect(outcomes.map(({ plan }) => plan.steps.length)).toEqual([1, 1]);
    // None waits where the first has come to its end before the second begins.
    const waiting = /^waiting for (?:the activation that process \d+ has been running|another activation)/;
    expect(site.lines.filter((line) => waiting.test(line)).length).toBeLessThanOrEqual(1);
    // The last one stands, whole.
    const last = site.read(CONFIG) === two[CONFIG]!.content ? two : one;
    for (const [file, { content }] of Object.entries(last)) expect(site.read(file)).toBe(content);
    // And the document that is asked for is the one that counts, whatever lies there meanwhile.
    writeFileSync(path.join(other, documentOf(one)), JSON.stringify(document(two)));
    expect(codes(await problemsOf(site.activate({ incoming: other, document: documentOf(one) })))).toEqual([
      "activation.corrupt-blob",
    ]);
    // Files that are in place may have been written by another apply.
    const inPlace = { incoming: undefined, document: "0".repeat(64) };
    expect(codes(await problemsOf(site.activate(inPlace)))).toEqual(["activation.other-document"]);
  });

  test("the lock's file is removed while one waits for it: the next two still take turns", async () => {
    site.deliver(one);
    await site.activate();
    const lock = site.at("/var/lib/portico/lock");
    // Kept open, so that no new file can get its inode.
    const removed = openSync(lock, "r");
    const holder = spawn("flock", [lock, "sh", "-c", 'echo; read -r _; rm "$1"', "sh", lock], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    await nextEvent(holder.stdout, "data");
    site.deliver(two);
    // Below a folder nothing is said to be detached: both wait in this process.
    const activations = ["a", "b"].map((name) => {
      const incoming = site.at(`/var/lib/portico/incoming/${name}`);
      cpSync(site.incoming, incoming, { recursive: true });
      return site.activate({ incoming });
    });
    while (site.lines.filter((line) => line.startsWith("waiting for ")).length < 2) await nextTurn();
    holder.stdin.end("\n");
    expect((await Promise.all(activations)).map(({ plan }) => plan.steps.length).sort()).toEqual([0, 1]);
    expect(statSync(lock).ino).not.toBe(fstatSync(removed).ino);
    closeSync(removed);
    expect(site.read(CONFIG)).toBe(two[CONFIG]!.content);
  });

  test("a deactivation and a recovery that wait for another deactivation make nothing that stays", async () => {
    const store = site.at("/var/lib/portico/deployment");
    site.deliver(one);
    await site.activate();
    const lock = site.at("/var/lib/portico/lock");
    const holder = spawn("flock", [lock, "sh", "-c", 'echo; read -r _; rm -r "$@"', "sh", store, lock], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    await nextEvent(holder.stdout, "data");
    const report = (line: string): void => void site.lines.push(line);
    const waiting = [site.deactivate(), recoverHost({ root: site.root, lockSeconds: 10, report })];
    while (site.lines.filter((line) => line.startsWith("waiting for ")).length < 2) await nextTurn();
    holder.stdin.end("\n");
    const seen = new Set<boolean>();
    const done = Promise.all(waiting).then((outcomes) => (seen.add(existsSync(store)), outcomes));
    await once(holder, "close");
    seen.add(existsSync(store));
    expect(await done).toEqual([undefined, undefined]);
    // Not for a moment either: whoever looks then would find a host that still has a deployment.
    expect([...seen]).toEqual([false]);
    expect(await site.deactivate()).toBeUndefined();
    expect(existsSync(store)).toBe(false);
  });
});

const HOLDER = {
  what: "deactivation",
  pid: 4711,
  since: "2026-01-02T03:04:05.678Z",
  from: "192.0.2.7",
  incoming: "/var/lib/portico/incoming/two",
};
const HELD_BY =
  "the deactivation that process 4711 has been running since 2026-01-02T03:04:05.678Z, started from 192.0.2.7, with the uploads in /var/lib/portico/incoming/two";

function damage(s: Site): void {
  writeFileSync(path.join(s.incoming, sha256(two[CONFIG]!.content)), "half");
  removed(s, `/var/lib/portico/incoming/one/${sha256(two["/usr/lib/portico/portico.mjs"]!.content)}`);
}

test("files that the delivery wrote in place: the last good state comes from the store", async () => {
  const inPlace = (files: SiteFiles): void => {
    for (const [file, { content, mode = "0644" }] of Object.entries(files)) {
      site.write(file, content, parseInt(mode, 8));
      chmodSync(site.at(file), parseInt(mode, 8));
    }
    site.write("/etc/portico/deployment.json", JSON.stringify(document(files)), 0o640);
    chmodSync(site.at("/etc/portico/deployment.json"), 0o640);
  };
  inPlace(one);
  const first = await site.activate({ incoming: undefined });
  expect(first.plan.files.map(({ why }) => why)).toEqual(Array(6).fill("in place already"));
  const good = site.snapshot();
  inPlace({ ...two, [CONFIG]: { role: "config", content: "{}" } });
  expect(codes(await problemsOf(site.activate({ incoming: undefined })))).toContain("config.missing-field");
  inPlace(two);
  const second = await site.activate({ incoming: undefined });
  expect(second.plan.files.map(({ path: p }) => p)).toContain("/usr/lib/portico/portico.mjs");
  inPlace(one);
  await site.activate({ incoming: undefined });
  expect(site.snapshot()).toEqual(good);
  // Who wrote the files removes them as well.
  await site.deactivate();
  expect(site.snapshot()).toEqual(good);
});

/** Mounts a file system of its own on a directory of the host. */
async function withMount(at: string, options: string, act: () => Promise<void>): Promise<void> {
  mkdirSync(site.at(at), { recursive: true });
  execFileSync("mount", ["-t", "tmpfs", "-o", options, "tmpfs", site.at(at)]);
  try {
    await act();
  } finally {
    execFileSync("umount", [site.at(at)]);
  }
}

describe("a write that fails rolls back, and is named:", () => {
  async function expectRollBack(spoilt: SiteFiles, path: string, message: RegExp): Promise<void> {
    const good = site.snapshot();
    site.deliver(spoilt);
    const error = await site.activate().catch((e: unknown) => e);
    expect(error).toBeInstanceOf(ActivationFailed);
    const reason = [{ code: "activation.file-failed", path, message: expect.stringMatching(message) }];
    expect(error).toMatchObject({ name: "ActivationFailed", reason, notRestored: [] });
    expect(site.snapshot()).toEqual(good);
    // What was wrong with it is fixed, and it is tried again.
    site.deliver(two);
    await site.activate();
    expect(site.read(CONFIG)).toBe(two[CONFIG]!.content);
    site.deliver(one);
    await site.activate();
    expect(site.snapshot()).toEqual(good);
  }

  test("a read-only file system", async () => {
    site.deliver(one);
    await site.activate();
    await withMount("/usr/share/zzz", "ro,size=64k", () =>
      expectRollBack(
        { ...two, "/usr/share/zzz/file": { role: "other", content: "x" } },
        site.at("/usr/share/zzz/file"),
        /^cannot be written \(30: Read-only file system\)$/,
      ),
    );
  });

  test("a disk with space but no inodes left", async () => {
    site.deliver(one);
    await site.activate();
    await withMount("/usr/share/zzz", "size=64k,nr_inodes=1", async () => {
      const good = site.snapshot();
      site.deliver({ ...two, "/usr/share/zzz/file": { role: "other", content: "x" } });
      expect(await problemsOf(site.activate())).toMatchObject([
        {
          code: "activation.no-room",
          path: site.at("/usr/share/zzz"),
          message: "is on a file system that can hold 0 more files, but the deployment needs 3",
        },
      ]);
      expect(site.snapshot()).toEqual(good);
    });
  });

  test("a file system without a number of files that it can hold, as btrfs is, has room", async () => {
    site.deliver(one);
    await site.activate();
    await withMount("/usr/share/zzz", "size=1m,nr_inodes=0", async () => {
      site.deliver({ ...two, "/usr/share/zzz/file": { role: "other", content: "x" } });
      await site.activate();
      expect(site.read("/usr/share/zzz/file")).toBe("x");
      site.deliver(one);
      await site.activate();
    });
  });

  test.each([
    ["bytes", "size=64k", /has \d+ KiB left/],
    ["files", "size=1m,nr_inodes=1", /can hold 0 more files/],
  ])("no room for logs, in %s: found before anything is started", async (_what, options, message) => {
    site.deliver(one);
    await site.activate();
    await withMount("/var/log/zzz", options, async () => {
      if (options.startsWith("size=64k")) site.write("/var/log/zzz/all", "x".repeat(60_000));
      const good = site.snapshot();
      const config = { ...siteConfig({ mode: "tls" }), logs: { error: { path: "/var/log/zzz/error.log" } } };
      site.deliver({ ...two, [CONFIG]: { role: "config", content: JSON.stringify(config) } });
      expect(await problemsOf(site.activate())).toMatchObject([
        {
          code: "activation.no-room",
          path: site.at("/var/log/zzz"),
          message: expect.stringMatching(message),
        },
      ]);
      expect(site.snapshot()).toEqual(good);
    });
  });

  test("uploads that no document names stay for a week, and those that the host has are gone", async () => {
    site.deliver(one);
    const names = {
      used: `${sha256(one[CONFIG]!.content)}.a`,
      fresh: `${"a".repeat(64)}.b`,
      old: `${"b".repeat(64)}.c`,
    };
    const kept = ["run.fresh", "1.sh"];
    for (const name of [...Object.values(names), ...kept, "run.old", "2.sh", "mine"])
      site.write(`/var/lib/portico/incoming/one/${name}`, "x");
    const then = Date.now() / 1000 - 8 * 86_400;
    for (const name of [names.old, "run.old", "2.sh", "mine"])
      utimesSync(path.join(site.incoming, name), then, then);
    await site.activate();
    expect(readdirSync(site.incoming).sort()).toEqual(
      ["deployment.json", names.fresh, ...kept, "mine"].sort(),
    );
  });

  test("uploads of a state that was lost are gone after a week", async () => {
    for (const [name, days] of [
      ["lost", 8],
      ["recent", 6],
    ] as const) {
      site.write(`/var/lib/portico/incoming/${name}/upload`, "x");
      const then = Date.now() / 1000 - days * 86_400;
      utimesSync(site.at(`/var/lib/portico/incoming/${name}`), then, then);
    }
    site.deliver(one);
    await site.activate();
    expect(readdirSync(site.at("/var/lib/portico/incoming")).sort()).toEqual(["one", "recent"]);
  });

  test("a disk with just enough space left", async () => {
    site.deliver(one);
    await site.activate();
    await withMount("/usr/share/zzz", "size=64k", async () => {
      // 32 KiB are left for the file system itself.
      for (const [bytes, expected] of [
        [32_769, ["activation.no-room"]],
        [32_768, []],
      ] as const) {
        site.deliver({ ...one, "/usr/share/zzz/file": { role: "other", content: "x".repeat(bytes) } });
        const problems = await site.activate().then(
          () => [],
          (error: ProblemError) => error.problems,
        );
        expect(codes(problems)).toEqual(expected);
      }
      // Of a file whose mode changes, there is a copy for a moment.
      site.deliver({
        ...one,
        "/usr/share/zzz/file": { role: "other", content: "x".repeat(32_768), mode: "0600" },
      });
      expect(codes(await problemsOf(site.activate()))).toEqual(["activation.no-room"]);
    });
  });

  test("a full disk, in the store: nothing was started", async () => {
    await withMount("/var/lib/portico/deployment", "size=256k", async () => {
      site.deliver(one);
      await site.activate();
      const good = site.snapshot();
      // What an upload replaces has to be kept.
      site.write("/etc/huge", "x".repeat(300_000));
      site.deliver({ ...two, "/etc/huge": { role: "other", content: "small" } });
      const problems = await problemsOf(site.activate());
      expect(problems).toMatchObject([{ code: "activation.no-room" }]);
      removed(site, "/etc/huge");
      expect(site.snapshot()).toEqual(good);
      site.deliver(two);
      await site.activate();
    });
  });
});

test("interrupted, it rolls back", async () => {
  site.deliver(one);
  await site.activate();
  const good = site.snapshot();
  site.deliver(two);
  const controller = new AbortController();
  controller.abort("SIGTERM");
  const before = site.lines.length;
  const error: unknown = await site.activate({ signal: controller.signal }).catch((e: unknown) => e);
  expect(error).toMatchObject({ problems: [{ code: "activation.interrupted" }] });
  // Nothing was begun that would have to be rolled back.
  expect(error).not.toBeInstanceOf(ActivationFailed);
  expect(site.lines).toHaveLength(before);
  expect(site.snapshot()).toEqual(good);
});

describe("application settings", () => {
  const BEGIN = "# BEGIN Portico (do not edit these lines: the deployment sets them)";
  const PRINT_ORIGINS = "import json\nprint(json.dumps(CSRF_TRUSTED_ORIGINS))";
  const SECRET = "the-secret-key-of-the-application";
  const files = {
    networkDaemon: "/opt/sync/conf/network.conf",
    webApplication: "/opt/sync/conf/web_settings.py",
    fileServer: "/opt/sync/conf/fileserver.conf",
  };
  const original: Record<string, string> = {
    [files.networkDaemon]: "[General]\r\nSERVICE_URL = http://old/sync\r\nID = 1\r\n",
    [files.webApplication]: `# caf\u00e9\nSECRET_KEY = '${SECRET}'\nSITE_ROOT = '/old/'\n\nDATABASES = {}\n`,
    [files.fileServer]: "[fileserver]\nport = 8082\n",
  };
  const wanted = (host: string): Partial<DeploymentInput> => {
    const values = applicationSettingsValues({
      origins: [{ scheme: "https", host, port: 443 }],
      pathPrefix: "sync",
      enableSettingsViaWeb: false,
      fileServerHost: "127.0.0.1",
      fileServerPort: 8082,
    });
    return { settings: { files: applicationSettingsFiles(values, files), apply: true } };
  };
  const read = (): Record<string, string> =>
    Object.fromEntries(Object.values(files).map((file) => [file, site.read(file)]));

  beforeEach(() => {
    for (const [file, content] of Object.entries(original)) site.write(file, content, 0o640);
  });

  test("no room next to them: found before anything is stopped", async () => {
    await withMount("/opt/sync/conf", "size=64k", async () => {
      for (const [file, content] of Object.entries(original)) site.write(file, content, 0o640);
      site.write("/opt/sync/conf/all", "x".repeat(40_000));
      const good = site.snapshot();
      site.deliver(one, wanted("first.example.org"));
      expect(await problemsOf(site.activate())).toMatchObject([
        { code: "activation.no-room", path: site.at("/opt/sync/conf") },
      ]);
      expect(site.snapshot()).toEqual(good);
    });
  });

  test("are edited and restored with the rest, and their secret is never copied", async () => {
    site.deliver(one, wanted("first.example.org"));
    const { plan } = await site.activate();
    expect([...new Set(plan.settings.edits.map(({ path: p }) => p))].sort()).toEqual(
      Object.values(files).sort(),
    );
    const first = read();
    expect(first[files.webApplication]).toMatch(
      /^# caf\u00e9\nSECRET_KEY = '[a-z-]+'\nSITE_ROOT = '\/old\/'\n# BEGIN Portico .*\n[^]*https:\/\/first\.example\.org\/synchttp[^]*\nSITE_ROOT = '\/sync\/'\n[^]*\n# END Portico\n\nDATABASES = \{\}\n$/,
    );
    site.deliver(two, wanted("second.example.org"));
    await site.activate();
    expect(read()[files.networkDaemon]).toBe(
      "[General]\r\nSERVICE_URL = https://second.example.org/sync\r\nID = 1\r\n",
    );
    // Everywhere, the store included: the file itself is the only one.
    const secretive = execFileSync("grep", ["-rlF", SECRET, site.root], { encoding: "utf8" });
    expect(secretive.trim().split("\n")).toEqual([site.at(files.webApplication)]);
    expect(readdirSync(site.at("/opt/sync/conf")).sort()).toEqual(
      Object.values(files)
        .map((file) => path.basename(file))
        .sort(),
    );
    expect(site.lines.join("\n")).not.toContain(SECRET);
    await site.deactivate();
    expect(read()).toEqual(original);
    expect(statSync(site.at(files.webApplication)).mode & 0o777).toBe(0o640);
  });

  test("of a site that is no longer deployed are undone once the others serve; those of others stay", async () => {
    const { settings } = wanted("first.example.org");
    const env = "/srv/vault/.env";
    const others = {
      path: env,
      kind: "env",
      name: "vault-env",
      items: [{ name: "DOMAIN", value: "https://v" }],
    } as const;
    site.write(env, "A=1\n");
    const both = { files: [...settings!.files!, others], apply: true };
    site.deliver(one, { settings: both });
    await site.activate();
    // By hand, as no deployment has it.
    const byHand = { files: [{ ...others, path: "/srv/vault/by-hand.env" }] } as SettingsSource;
    site.write("/srv/vault/by-hand.env", "");
    await editByHand(site.root, await planByHand(site.root, byHand));
    const good: Record<string, string> = { ...read(), env: site.read(env) };

    // What leaves is there as long as the new deployment may be rolled back.
    const alone = { settings: { files: [others], apply: true } };
    site.deliver({ ...two, [CONFIG]: { role: "config", content: "{" } }, alone);
    await problemsOf(site.activate());
    expect({ ...read(), env: site.read(env) }).toEqual(good);

    site.deliver(two, alone);
    const planned = await site.activate({ dryRun: true });
    expect(formatPlan(planned.plan)).toContain(
      `  ${files.webApplication}: its settings are no longer deployed`,
    );
    expect({ ...read(), env: site.read(env) }).toEqual(good);
    // A file that cannot be written is left to the next activation.
    const mounted = site.at(files.networkDaemon);
    execFileSync("mount", ["--bind", mounted, mounted]);
    try {
      await site.activate();
    } finally {
      execFileSync("umount", [mounted]);
    }
    expect(site.read(files.networkDaemon)).toBe(good[files.networkDaemon]);
    expect(site.read(files.webApplication)).toBe(original[files.webApplication]);
    await site.activate();
    expect({ ...read(), env: site.read(env) }).toEqual({ ...original, env: good.env });
    expect(site.read("/srv/vault/by-hand.env")).toBe("DOMAIN=https://v\n");

    // The site comes back.
    site.deliver(one, { settings: both });
    await site.activate();
    expect({ ...read(), env: site.read(env) }).toEqual(good);
    await site.deactivate();
    expect({ ...read(), env: site.read(env), byHand: site.read("/srv/vault/by-hand.env") }).toEqual({
      ...original,
      env: "A=1\n",
      byHand: "",
    });
  });

  test("are removed item by item: what was written since stays, to the byte", async () => {
    site.deliver(one, wanted("first.example.org"));
    await site.activate();
    // Lines around ours, and one of our items set to something else.
    const byHand = (file: string, edit: (text: string) => string): void =>
      site.write(file, edit(site.read(file)), 0o640);
    byHand(files.fileServer, (text) => `# above\n${text}# by hand\n`);
    byHand(files.webApplication, (text) =>
      text
        .replace("SITE_ROOT = '/sync/'", "SITE_ROOT = '/mine/'")
        .replace("DATABASES", "DEBUG = 1\nDATABASES"),
    );
    rmSync(site.at(files.networkDaemon));
    site.deliver(two, wanted("second.example.org"));
    site.write(files.networkDaemon, "[General]\nSERVICE_URL = http://mine\n");
    await site.activate();
    byHand(files.webApplication, (text) => text.replace("'/sync/'", "'/mine/'"));
    byHand(files.networkDaemon, (text) => text.replace("second.example.org", "mine"));
    site.lines.length = 0;
    expect(await site.deactivate()).toEqual([]);
    expect(site.lines.filter((line) => line.includes("/conf/"))).toEqual([
      expect.stringContaining(`${files.fileServer}: Portico's changes are undone`),
      expect.stringMatching(
        /web_settings\.py:\d+: SITE_ROOT was changed by another program or person, so the new value stays; before the first deployment the line was not there$/,
      ),
      expect.stringMatching(
        /network\.conf:2: General\.SERVICE_URL was changed .* it was http:\/\/old\/sync$/,
      ),
    ]);
    expect([site.read(files.fileServer), site.read(files.webApplication)]).toEqual([
      `# above\n${original[files.fileServer]}# by hand\n`,
      original[files.webApplication]!.replace(
        "\nDATABASES",
        `${BEGIN}\nSITE_ROOT = '/mine/'\n# END Portico\n\nDEBUG = 1\nDATABASES`,
      ),
    ]);
  });

  test("of three activations, with a rename: our trusted origins are removed, those of others stay", async () => {
    const origins = "CSRF_TRUSTED_ORIGINS = [\n    'https://theirs.example.org',  # a partner\n]\n";
    const before = original[files.webApplication]!.replace("DATABASES", `${origins}DATABASES`);
    site.write(files.webApplication, before, 0o640);
    const listed = (): unknown =>
      JSON.parse(
        execFileSync("python3", ["-c", `${site.read(files.webApplication)}\n${PRINT_ORIGINS}`], {
          encoding: "utf8",
        }),
      );
    for (const [files_, host] of [
      [one, "first.example.org"],
      [two, "second.example.org"],
      [one, "third.example.org"],
    ] as const) {
      site.deliver(files_, wanted(host));
      await site.activate();
      expect(listed()).toEqual(["https://theirs.example.org", `https://${host}`]);
    }
    await site.deactivate();
    expect(site.read(files.webApplication)).toBe(before);
  });

  test("edited by `portico settings apply` in between are undone as well", async () => {
    site.deliver(one, wanted("first.example.org"));
    await site.activate();
    site.write(files.fileServer, "[fileserver]\nport = 9999\n", 0o640);
    const source = wanted("second.example.org").settings as SettingsSource;
    const planned = await planByHand(site.root, source);
    expect(await editByHand(site.root, planned)).toMatchObject({ ok: true });
    expect(lockOf(site)).toMatchObject({ what: "edit of settings" });
    // With nothing to do, nothing is written.
    const { ino } = statSync(site.at("/var/lib/portico/deployment/state.json"));
    expect(await editByHand(site.root, await planByHand(site.root, source))).toMatchObject({ ok: true });
    expect(statSync(site.at("/var/lib/portico/deployment/state.json")).ino).toBe(ino);
    expect(site.read(files.networkDaemon)).toContain("https://second.example.org/sync");
    await site.deactivate();
    expect(read()).toEqual({ ...original, [files.fileServer]: "[fileserver]\nport = 9999\n" });
  });

  test("planned by a user who may not read the state", async () => {
    site.deliver(one, wanted("first.example.org"));
    await site.activate();
    const source = wanted("second.example.org").settings as SettingsSource;
    process.seteuid!(65_534);
    try {
      expect(await planByHand(site.root, source)).toMatchObject({ edits: [] });
    } finally {
      process.seteuid!(0);
    }
    site.write("/var/lib/portico/deployment/state.json", "{");
    expect(await problemsOf(editByHand(site.root, await planByHand(site.root, source)))).toMatchObject([
      { code: "activation.damaged-store", path: site.at("/var/lib/portico/deployment/state.json") },
    ]);
  });

  test("that were changed by hand are all that a run changes", async () => {
    site.deliver(one, wanted("first.example.org"));
    await site.activate();
    site.write(files.networkDaemon, original[files.networkDaemon]!);
    site.deliver(one, wanted("first.example.org"));
    const { plan } = await site.activate();
    expect([plan.files, plan.steps]).toEqual([[], [{ do: "files" }]]);
    expect(site.read(files.networkDaemon)).toContain("https://first.example.org/sync");
    expect((await site.activate()).plan.steps).toEqual([]);
  });

  test("that are gone or cannot be read are reported", async () => {
    site.deliver(one, wanted("first.example.org"));
    await site.activate();
    rmSync(site.at(files.networkDaemon));
    site.lines.length = 0;
    expect(await site.deactivate()).toEqual([]);
    expect(site.lines.filter((line) => line.includes("network.conf"))).toEqual([
      expect.stringContaining(`${files.networkDaemon}: cannot be read (2: No such file or directory)`),
    ]);
  });

  test("that cannot be edited safely keep everything as it is", async () => {
    site.write(files.webApplication, "import os\nexec(open('x').read())\nSITE_ROOT = [\n");
    site.deliver(one, wanted("first.example.org"));
    const before = site.snapshot();
    expect((await problemsOf(site.activate()))[0]!.code).toMatch(/^settings\./);
    expect(site.snapshot()).toEqual(before);
  });
});

test("the last deployment is activated again from what is left of it", async () => {
  const again = (): Promise<unknown> => site.activate({ again: true });
  expect(await problemsOf(again())).toMatchObject([
    {
      code: "activation.damaged-store",
      path: site.at("/var/lib/portico/deployment/state.json"),
      message: "does not exist: nothing was activated on this host",
    },
  ]);
  site.deliver(one);
  await site.activate();
  const [document, blobs] = [site.read("/etc/portico/deployment.json"), blobsOf(site)];
  const blob = `/var/lib/portico/deployment/blobs/${sha256(document)}`;
  // Its copy in the store is lost: the one on the host is kept again.
  rmSync(site.at(blob));
  await again();
  expect(blobsOf(site)).toEqual(blobs);
  // Or the other way round.
  site.write("/etc/portico/deployment.json", "changed");
  await again();
  expect(site.read("/etc/portico/deployment.json")).toBe(document);
  site.write(blob, "damaged");
  rmSync(site.at("/etc/portico/deployment.json"));
  expect(await problemsOf(again())).toMatchObject([
    {
      code: "activation.damaged-store",
      path: site.at(blob),
      message: "is missing or damaged, and the document on the host is too",
    },
  ]);
});

test("what was activated is known again after the state was lost, from uploads and from files in place", async () => {
  const state = "/var/lib/portico/deployment/state.json";
  for (const incoming of [site.incoming, undefined]) {
    site.deliver(one);
    await site.activate();
    rmSync(site.at(state));
    site.deliver(one);
    const { plan } = await site.activate({ incoming });
    expect(plan.files.map(({ why }) => why)).toEqual(
      incoming === undefined ? Array(6).fill("in place already") : [],
    );
    expect(JSON.parse(site.read(state))).toMatchObject({ version: 1, deployment: { config: CONFIG } });
  }
});

test("a file that was the same before is put back when a later deployment has changed it", async () => {
  const page = "/usr/share/portico/default/index.html";
  site.write(page, one[page]!.content);
  site.deliver(one);
  expect((await site.activate()).plan.files.map(({ path: p }) => p)).not.toContain(page);
  site.deliver(two);
  await site.activate();
  expect(await site.deactivate()).toEqual([]);
  expect(site.read(page)).toBe(one[page]!.content);
});

test("directories of files that leave, and were removed by hand, are not made again", async () => {
  site.deliver({ ...one, "/srv/deep/file": { role: "other", content: "x" } });
  expect((await site.activate()).plan.directories).toContain("/srv/deep");
  rmSync(site.at("/srv"), { recursive: true });
  site.deliver(one);
  expect((await site.activate()).plan.directories).toEqual([]);
});

test("what a process that was killed had begun to write into the store is removed, but not by a dry run", async () => {
  site.deliver(one);
  await site.activate();
  const begun = ["", "blobs/"].map(
    (folder) => `/var/lib/portico/deployment/${folder}.portico-new-0123456789abcdef`,
  );
  for (const file of begun) site.write(file, "x");
  site.deliver(one);
  await site.activate({ dryRun: true });
  expect(begun.map((file) => existsSync(site.at(file)))).toEqual([true, true]);
  await site.activate();
  expect(begun.map((file) => existsSync(site.at(file)))).toEqual([false, false]);
});

test("a deactivation has nothing to remove below a directory that was replaced by a file", async () => {
  site.deliver({ ...one, "/srv/a/b/file": { role: "other", content: "x" } });
  await site.activate();
  rmSync(site.at("/srv/a"), { recursive: true });
  site.write("/srv/a", "a file");
  expect(await site.deactivate()).toEqual([]);
  expect(site.read("/srv/a")).toBe("a file");
});

test("a deactivation puts a file back into a directory that was removed by hand", async () => {
  site.write("/srv/deep/file", "before", 0o640);
  const before = site.snapshot();
  site.deliver({ ...one, "/srv/deep/file": { role: "other", content: "x" } });
  await site.activate();
  rmSync(site.at("/srv"), { recursive: true });
  expect(await site.deactivate()).toEqual([]);
  expect(site.snapshot()).toEqual(before);
});

test("problems of a document and of its contents say where they are", async () => {
  const placed = async (more: object = {}): Promise<unknown> =>
    (await problemsOf(site.activate(more))).map(({ code, path: p, message }) => [code, p, message]);
  site.deliver(one);
  const file = path.join(site.incoming, "deployment.json");
  writeFileSync(file, "{");
  expect(await placed()).toEqual([["config.not-json", file, expect.any(String)]]);
  writeFileSync(file, JSON.stringify({ ...document(one), version: 2 }));
  expect(await placed()).toEqual([["config.unsupported-version", `${file}: version`, expect.any(String)]]);
  site.write("/etc/portico/deployment.json", JSON.stringify(document(one)), 0o640);
  expect(await placed({ incoming: undefined })).toEqual(
    Object.keys(one)
      .sort()
      .map((p) => ["activation.corrupt-blob", p, "is missing, or differs from the deployment"]),
  );
  rmSync(site.at("/etc/portico"), { recursive: true });
  symlinkSync("portico", site.at("/etc/portico"));
  site.deliver(one);
  expect(await placed()).toEqual(
    [CONFIG, "/etc/portico/tls/cacert.pem", KEY, "/etc/portico/deployment.json"].map((p) => [
      "activation.bad-target",
      p,
      "is below /etc/portico, which is not a directory",
    ]),
  );
});

describe("a journal that is left open", () => {
  const file = "/var/lib/portico/deployment/journal.json";
  const report = (line: string): void => void site.lines.push(line);
  const recovered = () => recoverHost({ root: site.root, lockSeconds: 10, report });
  const journal = (more: object): void => {
    const { deployment, id } = JSON.parse(site.read("/var/lib/portico/deployment/state.json")) as Record<
      string,
      unknown
    >;
    const open = { version: 1, kind: "activation", id, startedAt: "then", deployment, files: [] };
    site.write(file, JSON.stringify({ ...open, directories: [], settings: [], units: {}, ...more }));
  };
  beforeEach(async () => {
    site.deliver(one);
    await site.activate();
    site.lines.length = 0;
  });

  test("of an activation that had succeeded is closed", async () => {
    const files = [{ path: KEY, role: "tls", restore: { kind: "absent" } }];
    journal({ files });
    const said = "the activation of then was cut off when its deployment served: finishing it";
    expect([await recovered(), site.lines]).toEqual([undefined, [said]]);
    expect(lockOf(site)).toMatchObject({ what: "recovery" });
    expect([existsSync(site.at(file)), existsSync(site.at(KEY))]).toEqual([false, true]);
  });

  test("stays while a file cannot be restored", async () => {
    journal({ id: "another", files: [{ path: KEY, role: "tls", restore: { kind: "absent" } }] });
    execFileSync("mount", ["--bind", site.at(KEY), site.at(KEY)]);
    try {
      expect(await problemsOf(recovered())).toMatchObject([
        { code: "activation.file-failed", path: site.at(KEY) },
      ]);
      expect(existsSync(site.at(file))).toBe(true);
    } finally {
      execFileSync("umount", [site.at(KEY)]);
    }
    expect(await recovered()).toEqual({ kind: "activation", problems: [] });
    expect([existsSync(site.at(file)), existsSync(site.at(KEY))]).toEqual([false, false]);
  });
});

test("uploads on another file system are copied before they are removed", async () => {
  execFileSync("mount", ["-t", "tmpfs", "tmpfs", site.incoming]);
  try {
    site.deliver(one);
    await site.activate();
    expect(site.read(CONFIG)).toBe(one[CONFIG]!.content);
    for (const { content } of Object.values(one)) {
      const blob = site.at(`/var/lib/portico/deployment/blobs/${sha256(content)}`);
      expect(sha256(readFileSync(blob))).toBe(sha256(content));
      expect(existsSync(path.join(site.incoming, sha256(content)))).toBe(false);
    }
  } finally {
    execFileSync("umount", [site.incoming]);
  }
});

test("logs are removed only on request", async () => {
  mkdirSync(site.at("/var/log/portico"), { recursive: true });
  const others = ["error.log.1.bak", "error.log.old.1", "error.logbook", "other.error.log"];
  for (const name of ["error.log", "error.log.1", "error.log-20260101.gz", ...others]) {
    site.write(`/var/log/portico/${name}`, "x");
  }
  site.deliver(one);
  await site.activate();
  await site.deactivate();
  expect(readdirSync(site.at("/var/log/portico"))).toHaveLength(7);
  site.deliver(one);
  await site.activate();
  await site.deactivate(true);
  expect(readdirSync(site.at("/var/log/portico")).sort()).toEqual(others);
  expect(site.lines.filter((line) => line.includes("/var/log/")).sort()).toEqual(
    ["error.log-20260101.gz", "error.log.1", "error.log"].map(
      (name) => `  ${site.at(`/var/log/portico/${name}`)}: removed`,
    ),
  );
});

describe("certificates by ACME", () => {
  const STATE = "/var/lib/private/portico-certificates/acme/certificates/ca-1/certificate.pem";

  /** As systemd has it for a dynamic user. */
  function keep(): void {
    site.write(STATE, "key and chain");
    symlinkSync("private/portico-certificates", site.at("/var/lib/portico-certificates"));
  }
  const left = (): string[] =>
    execFileSync("find", [site.at("/var/lib"), "-path", "*-certificates*", "-printf", "%P\n"])
      .toString()
      .split("\n")
      .filter(Boolean)
      .sort();

  test("are removed only on request, whatever deployed them", async () => {
    keep();
    site.deliver(one);
    await site.activate();
    await site.deactivate();
    expect(site.read(STATE)).toBe("key and chain");
    site.deliver(one);
    await site.activate();
    expect(await site.deactivate(true)).toEqual([]);
    expect(left()).toEqual([]);
    expect(site.lines).toContain(`  ${site.at("/var/lib/portico-certificates/acme")}: removed`);
  });

  test("of a first activation that failed are removed, too", async () => {
    keep();
    expect(await site.deactivate(true)).toBeUndefined();
    expect(left()).toEqual([]);
  });

  test("what somebody else put there stays, and nothing outside of it is touched", async () => {
    keep();
    site.write("/root/mine/key.pem", "mine");
    symlinkSync(site.at("/root/mine"), site.at("/var/lib/private/portico-certificates/acme/mine"));
    site.write("/var/lib/private/portico-certificates/backup.tar", "x");
    site.deliver(one);
    await site.activate();
    expect(await site.deactivate(true)).toEqual([]);
    expect(left()).toEqual([
      "portico-certificates",
      "private/portico-certificates",
      "private/portico-certificates/backup.tar",
    ]);
    expect(site.read("/root/mine/key.pem")).toBe("mine");
  });

  test("that cannot be removed are named, and nothing waits for them", async () => {
    keep();
    site.deliver(one);
    await site.activate();
    const folder = path.dirname(site.at(STATE));
    execFileSync("mount", ["--bind", folder, folder]);
    try {
      expect(await site.deactivate(true)).toMatchObject([
        { code: "activation.file-failed", path: site.at("/var/lib/portico-certificates/acme") },
      ]);
    } finally {
      execFileSync("umount", [folder]);
    }
    expect(existsSync(site.at(CONFIG))).toBe(false);
    // A later run has no deployment to remove, only what is left.
    expect(await site.deactivate(true)).toBeUndefined();
    expect(left()).toEqual([]);
  });
});

describe("logs that should be removed:", () => {
  const LOG = "/var/log/portico/error.log";

  /** Keeps a file from being removed. @returns what lets it go */
  function mounted(file: string): () => void {
    execFileSync("mount", ["--bind", site.at(file), site.at(file)]);
    return () => void execFileSync("umount", [site.at(file)]);
  }
  function appendOnly(file: string): () => void {
    execFileSync("chattr", ["+a", site.at(file)]);
    return () => void execFileSync("chattr", ["-a", site.at(file)]);
  }
  const logFolder = (): string[] => readdirSync(site.at("/var/log"), { recursive: true }).map(String).sort();
  const write = (...names: string[]): void => names.forEach((name) => site.write(name, "x"));
  const nothing = (): void => undefined;

  test.each<[string, () => () => void, string[], { path: string; message: RegExp }[]]>([
    [
      "one may only be appended to: the others go, and nothing waits for it",
      () => {
        write(LOG, `${LOG}.1`, "/var/log/portico/access.log");
        return appendOnly(LOG);
      },
      ["portico", "portico/error.log"],
      [{ path: LOG, message: /^cannot be removed \(1: / }],
    ],
    [
      "two are in use: the others go, and nothing waits for them",
      () => {
        write(LOG, `${LOG}.1`, "/var/log/portico/access.log");
        const [first, second] = [mounted(LOG), mounted("/var/log/portico/access.log")];
        return () => [first, second].forEach((release) => release());
      },
      ["portico", "portico/access.log", "portico/error.log"],
      ["/var/log/portico/access.log", LOG].map((name) => ({
        path: name,
        message: /^cannot be removed \(16: /,
      })),
    ],
    [
      "what is not a regular file stays",
      () => {
        mkdirSync(site.at(`${LOG}-20260101`), { recursive: true });
        execFileSync("mknod", [site.at(LOG), "c", "1", "3"]);
        symlinkSync("error.log", site.at(`${LOG}.1`));
        return nothing;
      },
      ["portico", "portico/error.log", "portico/error.log-20260101", "portico/error.log.1"],
      [],
    ],
    [
      "a link that leads nowhere goes",
      () => {
        write("/var/log/other");
        symlinkSync("private/portico", site.at("/var/log/portico"));
        return nothing;
      },
      ["other"],
      [],
    ],
    [
      "a link that leads through a file stays",
      () => {
        write("/var/log/other");
        symlinkSync("other/portico", site.at("/var/log/portico"));
        return nothing;
      },
      ["other", "portico"],
      [],
    ],
    [
      "a link to itself stays, and is reported",
      () => {
        write("/var/log/other");
        symlinkSync("portico", site.at("/var/log/portico"));
        return nothing;
      },
      ["other", "portico"],
      [{ path: "/var/log/portico", message: /^cannot be read \(40: / }],
    ],
  ])("%s", async (_what, prepare, left, told) => {
    const logs = { access: { path: "/var/log/portico/access.log" }, error: { path: LOG } };
    const config = { ...(JSON.parse(one[CONFIG]!.content) as object), logs };
    const release = prepare();
    try {
      site.deliver({ ...one, [CONFIG]: { role: "config", content: JSON.stringify(config) } });
      await site.activate();
      const problems = (await site.deactivate(true))!;
      expect(problems.toSorted((a, b) => a.path.localeCompare(b.path))).toEqual(
        told.map(({ path: p, message }) =>
          expect.objectContaining({ path: site.at(p), message: expect.stringMatching(message) }),
        ),
      );
      expect(logFolder()).toEqual(left);
      site.deliver(one);
      await site.activate();
      expect(site.read(CONFIG)).toBe(one[CONFIG]!.content);
    } finally {
      release();
    }
  });
});
