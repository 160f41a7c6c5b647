import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { draftOf, prepareScript, receiveScript, roomScript, scriptOf } from "../../src/render/index.js";
import { randomText } from "../../testkit/random.js";
import { sha256, SITES } from "./site.js";

/** The scripts around an upload, on a small file system of its own as `/var`. */
let folder: string;
let incoming: string;

const MIB = 1 << 20;

beforeEach(() => {
  folder = mkdtempSync(path.join(SITES, "portico uploads "));
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=32m", "tmpfs", folder]);
  incoming = path.join(folder, "portico/incoming/0b7a");
  const store = path.join(folder, "portico/deployment");
  expect(sh(prepareScript({ store, incoming, identity: { id: "0b7a", construct: "a/b" } }))).toEqual([0, ""]);
});

afterEach(() => {
  execFileSync("umount", [folder]);
  rmSync(folder, { recursive: true });
});

function sh(script: string, cwd = "/"): [number | null, string] {
  const { status, stderr } = spawnSync("/bin/sh", ["-eu", "-c", script], { encoding: "utf8", cwd });
  return [status, stderr];
}

const upload = (byUser = false) => ({ incoming, id: "c0de", byUser, staging: "terraform_data.staging" });
const freeMib = (): number => {
  const { bavail, bsize } = statfsSync(folder);
  return (bavail * bsize) / MIB;
};

describe("a file is uploaded only if it fits, with the copies that activation makes of it", () => {
  const other = mkdtempSync(path.join(SITES, "portico other "));
  afterAll(() => rmSync(other, { recursive: true }));

  test.each<
    [string, { there?: number; elsewhere?: boolean; filled?: number; mib: number }, string | undefined]
  >([
    ["upload, kept copy and installed file", { mib: 9 }, undefined],
    ["more than that", { mib: 10 }, "34816"],
    ["the replaced file is kept as well", { mib: 8, there: 1 }, undefined],
    ["and that is more", { mib: 9, there: 5 }, "36865"],
    ["installed on another file system", { mib: 13, elsewhere: true }, undefined],
    ["more than that, too", { mib: 15, elsewhere: true }, "34816"],
    ["something else has filled the disk", { mib: 1, filled: 30 }, "7168"],
  ])("%s", (_, { mib, there, elsewhere = false, filled }, needs) => {
    const file = path.join(elsewhere ? other : folder, "lib/it's");
    if (filled !== undefined) writeFileSync(path.join(folder, "filled"), Buffer.alloc(filled * MIB));
    if (there !== undefined) {
      mkdirSync(path.dirname(file), { recursive: true });
      writeFileSync(file, Buffer.alloc(there * MIB));
    }
    const [status, said] = sh(roomScript(upload(), { path: file, bytes: mib * MIB, sha256: "0".repeat(64) }));
    if (needs === undefined) return expect([status, said]).toEqual([0, ""]);
    expect(status).toBe(1);
    expect(said).toMatch(
      /is on a file system that has \d+ KiB left, but .*it's needs \d+ KiB with .*\[delivery\.no-room\]\n/,
    );
    const numbers = [...said.matchAll(/\d+(?= KiB)/g)].map(Number);
    expect(Math.abs(numbers[0]! / 1024 - freeMib())).toBeLessThan(1);
    expect(String(numbers[1])).toBe(needs);
  });

  test("a file that is in place already needs no copies", () => {
    const file = path.join(folder, "node");
    const content = Buffer.from(randomText(20 * MIB));
    writeFileSync(file, content);
    const given = { path: file, bytes: 5 * MIB, sha256: sha256(content.toString("latin1")) };
    expect(sh(roomScript(upload(), given))).toEqual([0, ""]);
    expect(sh(roomScript(upload(), { ...given, sha256: "0".repeat(64) }))[0]).toBe(1);
  });
});

describe.each([false, true])("of an upload that failed nothing is left (by a user: %s)", (byUser) => {
  const home = (): string => path.join(folder, "home");
  const draft = (content: string, suffix = ""): string =>
    path.resolve(home(), draftOf(upload(byUser), sha256(content), suffix));
  const receive = (...suffixes: string[]) => sh(receiveScript(upload(byUser), suffixes), home());

  beforeEach(() => mkdirSync(path.join(home(), ".portico/incoming"), { recursive: true }));

  test("a disk that was full has its space again, and the script says how full it was", () => {
    const content = randomText(40 * MIB);
    const { status } = spawnSync("dd", ["if=/dev/zero", `of=${draft(content)}`, "bs=1M", "count=40"]);
    expect([status, freeMib()]).toEqual([1, 0]);
    const [ended, said] = receive("");
    expect([ended, readdirSync(incoming), freeMib() > 31]).toEqual([1, [], true]);
    expect(said).toMatch(
      /0b7a: an upload did not arrive whole, and was removed \[delivery\.incomplete-upload\]\n {4}received: "0 KiB left on that file system"\n/,
    );
  });

  test.each([
    ["half of it", "content".slice(0, 3)],
    ["another content", "tampered"],
    ["nothing", ""],
  ])("%s", (_, arrived) => {
    writeFileSync(draft("content"), arrived);
    expect(receive("")).toEqual([1, expect.stringContaining("[delivery.incomplete-upload]")]);
    expect(readdirSync(incoming)).toEqual([]);
  });

  test("a host that was reinstalled gets none, and the script says what to do", () => {
    rmSync(incoming, { recursive: true });
    for (const content of byUser ? ["key"] : []) writeFileSync(draft(content), content);
    for (const script of [
      roomScript(upload(byUser), { path: "/x", bytes: 1, sha256: sha256("key") }),
      receiveScript(upload(byUser), [""]),
    ]) {
      const [status, said] = sh(script, home());
      expect([status, said.split("\n").slice(0, 2)]).toEqual([
        1,
        [
          `${incoming}: does not exist, but an apply has made it, as Terraform's state says: was the host reinstalled, or replaced by another machine? [delivery.reinstalled-host]`,
          expect.stringMatching(/^ {4}fix: .* `terraform apply -replace=terraform_data\.staging`\. /),
        ],
      ]);
    }
    expect(readdirSync(path.join(home(), ".portico/incoming"))).toEqual([]);
  });

  test("one of two did not come at all", () => {
    writeFileSync(draft("document"), "document");
    expect(receive("", ".sh")).toEqual([1, expect.stringContaining("[delivery.incomplete-upload]")]);
  });

  test("whole ones get their names, and belong to root alone", () => {
    for (const [content, suffix] of [
      ["document", ""],
      ["script", ".sh"],
    ] as const) {
      writeFileSync(draft(content, suffix), content);
      chmodSync(draft(content, suffix), 0o644);
    }
    // Of another apply, which is under way.
    copyFileSync(draft("document"), path.join(incoming, `${sha256("document")}.d00d.new`));
    expect(receive("", ".sh")).toEqual([0, ""]);
    expect(readdirSync(incoming).sort()).toEqual(
      [
        `${sha256("document")}.c0de`,
        `${sha256("document")}.d00d.new`,
        path.basename(scriptOf(upload())),
      ].sort(),
    );
    if (byUser) expect(statSync(scriptOf(upload())).mode & 0o777).toBe(0o600);
    expect(readdirSync(path.join(home(), ".portico/incoming"))).toEqual([]);
  });
});
