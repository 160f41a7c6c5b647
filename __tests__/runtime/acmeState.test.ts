import { X509Certificate } from "node:crypto";
import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AcmeError } from "../../src/runtime/acme/acmeError.js";
import {
  certificateFile,
  folderOf,
  parse,
  readCertificates,
  standIn,
  writeCertificate,
} from "../../src/runtime/acme/certificateFile.js";
import { serverNameOf } from "../../src/runtime/acme/challenges.js";
import type { OrderedCertificate } from "../../src/runtime/acme/acmeHost.js";
import { RateLimits } from "../../src/runtime/acme/rateLimits.js";
import {
  readJson,
  readState,
  removeDrafts,
  removeState,
  writeState,
} from "../../src/runtime/acme/stateFiles.js";
import { issue } from "../../testkit/certificates.js";

/** What is kept on disk for certificates by ACME, and what is counted of an authority's limits. */

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const T = Date.UTC(2026, 5, 1);
let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "portico-acme-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("limits of an authority", () => {
  let now = T;
  const limits = (): RateLimits =>
    new RateLimits(folder, { now: () => now, elapsed: () => now, wait: () => Promise.resolve() });
  beforeEach(() => (now = T));

  /** When an order is allowed; undefined if it is now. */
  async function refusedUntil(by: RateLimits, names: string[], exempt = false): Promise<number | undefined> {
    try {
      await by.order(names, exempt);
      return undefined;
    } catch (error) {
      expect(error).toMatchObject({ code: "rateLimited", more: { notAsked: true } });
      return (error as AcmeError).more.retryAt;
    }
  }

  test("280 orders in three hours, also of two processes one after the other", async () => {
    const first = limits();
    for (let i = 0; i < 279; i++) await first.order([`${i}.example`], true);
    now += HOUR;
    expect(await refusedUntil(limits(), ["last.example"])).toBeUndefined();
    expect(await refusedUntil(limits(), ["more.example"], true)).toBe(T + 3 * HOUR);
    now = T + 3 * HOUR;
    expect(await refusedUntil(limits(), ["more.example"])).toBeUndefined();
  });

  test("four failed validations of a name in an hour", async () => {
    const one = limits();
    for (let i = 0; i < 4; i++) {
      expect(await refusedUntil(one, ["a.example", "b.example"])).toBeUndefined();
      await one.failed(["b.example"]);
      now += MINUTE;
    }
    expect(await refusedUntil(one, ["a.example"])).toBeUndefined();
    expect(await refusedUntil(one, ["a.example", "b.example"], true)).toBe(T + HOUR);
    now = T + HOUR - 1;
    expect(await refusedUntil(one, ["b.example"])).toBe(T + HOUR);
    now = T + HOUR;
    expect(await refusedUntil(one, ["b.example"])).toBeUndefined();
  });

  test("four certificates for the same names in a week, unless the authority asks for one", async () => {
    const one = limits();
    for (let i = 0; i < 4; i++)
      await one.issued(i % 2 === 0 ? ["a.example", "b.example"] : ["b.example", "a.example"]);
    expect(await refusedUntil(one, ["b.example", "a.example"])).toBe(T + 7 * DAY);
    expect(await refusedUntil(one, ["b.example", "a.example"], true)).toBeUndefined();
    expect(await refusedUntil(one, ["a.example"])).toBeUndefined();
    expect(await refusedUntil(limits(), ["a.example", "b.example"])).toBe(T + 7 * DAY);
  });

  test("the one that is longest counts", async () => {
    const one = limits();
    for (let i = 0; i < 4; i++) {
      await one.failed(["a.example"]);
      await one.issued(["a.example"]);
    }
    expect(await refusedUntil(one, ["a.example"])).toBe(T + 7 * DAY);
    expect(await refusedUntil(one, ["a.example"], true)).toBe(T + HOUR);
  });

  test("what a clock that was wrong has noted does not count, and what no limit counts is forgotten", async () => {
    const one = limits();
    now = T + DAY;
    for (let i = 0; i < 4; i++) await one.failed(["a.example"]);
    now = T + DAY - MINUTE;
    expect(await refusedUntil(one, ["a.example"])).toBe(T + DAY + HOUR);
    now = T + DAY - MINUTE - 1;
    expect(await refusedUntil(one, ["a.example"])).toBeUndefined();
    now = T + 2 * DAY;
    await one.order(["b.example"], false);
    expect(await readJson(join(folder, "limits.json"))).toEqual({ orders: [now], failures: {}, issued: {} });
    rmSync(join(folder, "limits.json"));
    one.forget();
    await one.issued(["c.example"]);
    expect(await readJson(join(folder, "limits.json"))).toEqual({
      orders: [],
      failures: {},
      issued: { "c.example": [now] },
    });
  });

  test.each<[string, unknown]>([
    ["nothing that counts", { orders: null, failures: null, issued: null }],
    ["texts", { orders: "many", failures: "many", issued: "many" }],
    ["numbers", { orders: 7, failures: { "a.example": 7 }, issued: { "a.example": 7 } }],
    ["lists of other things", { orders: [null, "x"], failures: [{}], issued: { "a.example": [null] } }],
    ["a list", []],
  ])("of which a file says %s begin anew", async (_, content) => {
    writeFileSync(join(folder, "limits.json"), JSON.stringify(content));
    const one = limits();
    await one.failed(["a.example"]);
    await one.issued(["a.example"]);
    expect(await refusedUntil(one, ["a.example"])).toBeUndefined();
  });

  test("are kept for a host of any name", async () => {
    const one = limits();
    expect(await refusedUntil(one, ["constructor"])).toBeUndefined();
    for (let i = 0; i < 4; i++) await one.failed(["constructor"]);
    expect(await refusedUntil(one, ["constructor"])).toBe(T + HOUR);
  });
});

describe("files", () => {
  test("are for their owner alone, replaced at once, and gone without complaint", async () => {
    const file = join(folder, "new/state.json");
    expect(await readState(file)).toBeUndefined();
    await writeState(file, "one");
    await writeState(file, "two");
    expect(await readState(file)).toBe("two");
    expect([statSync(file).mode & 0o777, statSync(join(folder, "new")).mode & 0o777]).toEqual([0o600, 0o700]);
    expect(readdirSync(join(folder, "new"))).toEqual(["state.json"]);
    await removeState(file);
    await removeState(file);
    await removeState(join(folder, "none/state.json"));
    expect(existsSync(file)).toBe(false);
  });

  test.each<[string, unknown]>([
    ['{"a":1}', { a: 1 }],
    ["[1]", [1]],
    ["null", undefined],
    ["7", undefined],
    ["{", undefined],
    ["", undefined],
  ])("with %j say %j", async (text, value) => {
    const file = join(folder, "state.json");
    writeFileSync(file, text);
    expect(await readJson(file)).toEqual(value);
  });

  test("that cannot be read or written are named, and leave nothing", async () => {
    mkdirSync(join(folder, "state.json"));
    await expect(readState(join(folder, "state.json"))).rejects.toMatchObject({
      code: "file",
      detail: expect.stringContaining(`${folder}/state.json cannot be read `),
    });
    await expect(writeState(join(folder, "state.json"), "x")).rejects.toMatchObject({
      code: "file",
      detail: expect.stringContaining(`${folder}/state.json cannot be written `),
    });
    await expect(removeState(join(folder, "state.json"))).rejects.toMatchObject({
      code: "file",
      detail: expect.stringMatching(/^\S+state\.json cannot be removed /),
    });
    expect(readdirSync(folder)).toEqual(["state.json"]);
  });

  test("that are pipes are not waited for, and huge ones not read", async () => {
    const descriptors = (): number => readdirSync("/proc/self/fd").length;
    const before = descriptors();
    const refused = (name: string, why: string): Promise<void> =>
      expect(readState(join(folder, name))).rejects.toMatchObject({
        code: "file",
        detail: `${folder}/${name} cannot be read (${why})`,
      });
    execFileSync("mkfifo", [join(folder, "pipe")]);
    await refused("pipe", "is a FIFO");
    writeFileSync(join(folder, "huge"), "");
    truncateSync(join(folder, "huge"), 16 * 1024 * 1024 + 1);
    await refused("huge", "has 16777217 bytes");
    truncateSync(join(folder, "huge"), 16 * 1024 * 1024);
    expect(await readState(join(folder, "huge"))).toHaveLength(16 * 1024 * 1024);
    // One who asks for what a name leads to gets it.
    writeFileSync(join(folder, "file"), "text");
    symlinkSync("file", join(folder, "link"));
    expect(await readState(join(folder, "link"))).toBe("text");
    expect(descriptors()).toBe(before);
  });

  test("that a crash left half written are removed, and nothing else", async () => {
    const kept = [
      ".0123456789ab.tmp.x",
      "0123456789ab.tmp",
      ".0123456789abc.tmp",
      "x.0123456789ab.tmp",
      ".0123456789AB.tmp",
    ];
    for (const name of [...kept, ".0123456789ab.tmp"]) writeFileSync(join(folder, name), "");
    await removeDrafts(folder);
    expect(readdirSync(folder).sort()).toEqual(kept.sort());
    await removeDrafts(join(folder, "none"));
  });
});

describe("a certificate", () => {
  test("is taken with its own key, whole, and without what is around it", async () => {
    const { key, cert } = await issue({ type: "ec" });
    const other = await issue({ type: "ec" });
    expect(parse(key, `# a\n${cert}# b\n`)).toMatchObject({ key, cert: cert.trimEnd() + "\n" });
    expect(parse(other.key, cert)).toBeUndefined();
    expect(parse("no key", cert)).toBeUndefined();
    expect(parse(key, "")).toBeUndefined();
    expect(parse(key, cert.repeat(10))).toBeDefined();
    expect(parse(key, cert.repeat(11))).toBeUndefined();
    expect(
      parse(key, `${cert}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`),
    ).toBeUndefined();
  });

  test.each([0, 1])("is not taken if one of its times is none: %d", async (which) => {
    const { key, cert } = await issue({ type: "ec" });
    const der = new X509Certificate(cert).raw;
    // Two UTCTimes.
    const first = der.indexOf("\x17\x0d", 0, "latin1");
    const at = which === 0 ? first : der.indexOf("\x17\x0d", first + 2, "latin1");
    const withTime = (time: string): string => {
      der.write(time, at + 2, "latin1");
      return `-----BEGIN CERTIFICATE-----\n${der.toString("base64")}\n-----END CERTIFICATE-----\n`;
    };
    expect(parse(key, withTime("260101000000Z"))).toBeDefined();
    expect(parse(key, withTime("991399999999Z"))).toBeUndefined();
  });

  test("of other names stands in: with the first name and a key of that kind, of most names, of the latest end", async () => {
    const wanted = (keyType: string, ...names: string[]) =>
      ({ names, keyType }) as unknown as OrderedCertificate;
    const put = async (id: string, options: Parameters<typeof issue>[0]): Promise<string> => {
      const issued = await issue(options);
      await writeCertificate(folderOf(folder, id), issued);
      return issued.cert.trimEnd();
    };
    const p256 = (...names: string[]) => wanted("ecdsa-p256", ...names);
    const found = async (of: OrderedCertificate) =>
      standIn(await readCertificates(folder), of)?.cert.trimEnd();
    expect(await found(p256("a.example"))).toBeUndefined();
    const one = await put("1", { type: "ec", names: ["a.example"] });
    const both = await put("2", { type: "ec", names: ["a.example", "b.example"] });
    const rsa = await put("3", { type: "rsa", names: ["a.example", "b.example"] });
    mkdirSync(folderOf(folder, "4"));
    writeFileSync(certificateFile(folderOf(folder, "4")), "nothing");
    mkdirSync(certificateFile(folderOf(folder, "5")), { recursive: true });
    expect(await found(p256("a.example", "b.example"))).toBe(both);
    expect(await found(p256("b.example", "a.example"))).toBe(both);
    expect(await found(wanted("rsa-2048", "a.example"))).toBe(rsa);
    expect(await found(p256("c.example", "a.example"))).toBeUndefined();
    expect([one, both]).toContain(await found(p256("a.example")));
    const latest = await put("6", { type: "ec", names: ["a.example"], to: 60 });
    expect(await found(p256("a.example"))).toBe(latest);
    expect(await found(p256("a.example", "b.example"))).toBe(both);
  });
});

test.each([
  ["a.example", "a.example"],
  ["192.0.2.7", "7.2.0.192.in-addr.arpa"],
  ["2001:db8::a1", "1.a.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa"],
])("an authority that validates %s by TLS asks for %s", (name, asked) => {
  expect(serverNameOf(name)).toBe(asked);
});
