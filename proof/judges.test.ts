import { TLS_POLICIES } from "../src/model/index.js";
import { GENERATED_RULES } from "./nginx/differential/deviations.js";
import type { GeneratedCase } from "./nginx/differential/generate.js";
import type { Outcome, Proxies } from "./nginx/differential/proxies.js";
import { search } from "./nginx/differential/search.js";
import { faultOf, least } from "./fuzz/fuzzer.js";
import { demand, type FuzzTarget } from "./fuzz/target.js";
import { judge } from "./conformance/tlsScan/judge.js";
import type { Finding, TestsslReport } from "./conformance/tlsScan/scanners.js";
import { readLitmus, unfit, worse } from "./conformance/webdav/litmus.js";
import { RULES } from "./nginx/deviations.js";
import { testWith } from "../testkit/testWith.js";
import { judge as judgeSoak } from "./soak/judge.js";

/** `npm run webdav`, `tls-scan`, `differential`, `fuzz` and `soak` judge real programs; here, that they would notice. */
describe("litmus", () => {
  const REPORT = [
    "-> running `basic':",
    " 0. init.................. pass",
    " 2. expect100.............  2. expect100............. pass",
    "<- summary for `basic': of 2 tests run: 2 passed, 0 failed. 100.0%",
    "-> running `locks':",
    "18. cond_put_corrupt_token WARNING: PUT failed with 400 not 423",
    "    ...................... pass (with 1 warning)",
    "    ...................... 19. complex_cond_put...... pass",
    "20. lock_shared........... FAIL (LOCK on `/x': 501 Not Implemented)",
    "21. owner_modify.......... SKIPPED",
  ].join("\n");

  test("is read test by test", () => {
    expect(readLitmus(REPORT)).toEqual([
      { test: "basic/init#0", result: "pass" },
      { test: "basic/expect100#2", result: "pass" },
      { test: "locks/cond_put_corrupt_token#18", result: "pass", message: "PUT failed with 400 not 423" },
      { test: "locks/complex_cond_put#19", result: "pass" },
      { test: "locks/lock_shared#20", result: "fail", message: "LOCK on `/x': 501 Not Implemented" },
      { test: "locks/owner_modify#21", result: "skip" },
    ]);
  });

  test.each<[string, string, string, string[]]>([
    ["the same", "", "", []],
    [
      "a failure",
      "19. complex_cond_put...... pass",
      "19. complex_cond_put...... FAIL (no)",
      ["locks/complex_cond_put#19"],
    ],
    ["a test that is not run", "19. complex_cond_put...... pass", "", ["locks/complex_cond_put#19"]],
    ["what failed directly too", "FAIL (LOCK on `/x': 501 Not Implemented)", "SKIPPED", []],
  ])("%s behind the front end", (_, from, to, expected) => {
    const behind = readLitmus(REPORT.replace(from, to));
    expect(worse(readLitmus(REPORT), behind).map((line) => line.split(":")[0])).toEqual(expected);
  });
});

describe("a run of litmus without the front end", () => {
  const whole = ["basic", "copymove", "props", "locks", "http"].map(
    (suite) => `-> running \`${suite}':\n 0. init.................. pass\n 1. begin................. pass`,
  );

  test.each<[string, readonly string[], readonly RegExp[]]>([
    ["is a measure where every suite ran", whole, []],
    [
      "is none where it was ended early",
      whole.slice(0, 3),
      [/^locks: no test of it passed/, /^http: no test of it passed/],
    ],
    [
      "is none where what must pass does not",
      whole.map((text) => text.replace(/(copymove[^]*begin\.+) pass/, "$1 FAIL (409 Conflict)")),
      [/^copymove\/begin#1: fail 409 Conflict/],
    ],
  ])("%s", (_, report, expected) => {
    const found = unfit(readLitmus(report.join("\n")), ["copymove"]);
    expect(found).toEqual(expected.map((pattern) => expect.stringMatching(pattern)));
  });
});

describe("TLS scan", () => {
  const [modern] = [TLS_POLICIES["mozilla-modern"].ciphers.split(":")];
  const seen = {
    protocols: ["TLSv1.3"],
    ciphers: { "TLSv1.3": modern! },
    groups: ["secp256r1", "secp384r1", "x25519"],
    weaknesses: [] as string[],
  };
  const report = (
    more: readonly Finding[] = [],
    said: Record<string, string> = {},
    notPerformed: readonly Finding[] = [],
  ): TestsslReport => ({
    findings: more,
    notPerformed,
    said: new Map(
      Object.entries({
        TLS1_2: "not offered",
        TLS1_3: "offered with final",
        ALPN_HTTP2: "h2",
        PFS_ECDHE_curves: "prime256v1 secp384r1 X25519",
        PFS_ciphers: modern!.join(" "),
        cert_keySize: "RSA 2048 bits",
        ...said,
      }),
    ),
  });
  const problems = (...[what, said]: [Partial<typeof seen>?, TestsslReport?]): readonly string[] =>
    judge("mozilla-modern", { ...seen, ...what }, said ?? report()).problems;

  test("passes what the policy says", () => {
    expect(problems()).toEqual([]);
  });

  test.each<[string, Partial<typeof seen>, TestsslReport, RegExp]>([
    ["an old protocol", { protocols: ["TLSv1.2", "TLSv1.3"] }, report(), /^sslscan: protocols/],
    [
      "a cipher more",
      { ciphers: { "TLSv1.3": [...modern!, "TLS_AES_128_CCM_SHA256"] } },
      report(),
      /^sslscan: ciphers of TLSv1.3/,
    ],
    ["a group more", { groups: [...seen.groups, "x448"] }, report(), /^sslscan: groups/],
    ["a weakness", { weaknesses: ["heartbleed with TLSv1.3"] }, report(), /heartbleed/],
    ["what only testssl.sh sees", {}, report([], { TLS1: "offered" }), /^testssl.sh: TLSv1.0/],
    [
      "a vulnerability",
      {},
      report([{ id: "ROBOT", severity: "CRITICAL", finding: "VULNERABLE" }]),
      /^testssl.sh: ROBOT, CRITICAL/,
    ],
    [
      "a check that was not performed",
      {},
      report([], {}, [{ id: "heartbleed", severity: "WARN", finding: "check failed" }]),
      /^testssl.sh: heartbleed, WARN: check failed/,
    ],
  ])("notices %s", (_, what, said, expected) => {
    const found = problems(what, said);
    expect(found).toEqual([expect.stringMatching(expected)]);
  });

  testWith("openssl")("gives the reason for findings that are intended", () => {
    const finding = { id: "cert_chain_of_trust", severity: "CRITICAL", finding: "failed (self signed)." };
    const { findings, problems: others } = judge("file-sync", seen, report([finding]));
    expect(findings[0]!.reason).toContain("service 3.1");
    expect(others.join()).not.toContain("cert_chain_of_trust");
  });
});

test("every deviation from nginx is allowed by a decision", () => {
  const cited = Object.entries({ ...RULES, ...GENERATED_RULES }).filter(
    // That the item exists is for references.test.ts.
    ([, { allowedBy }]) => !/^decisions \d+\.\d+(?: \(RFC \d+, [\d.]+\))?$/.test(allowedBy),
  );
  expect(cited).toEqual([]);
});

describe("a difference among generated requests", () => {
  /** Proxies that differ on some requests. */
  const proxies = (differ: (generated: GeneratedCase) => string | undefined): Proxies => ({
    compare: async (generated): Promise<Outcome> => {
      const fact = differ(generated);
      const unexplained = fact === undefined ? [] : [{ fact, nginx: "a", portico: "b" }];
      return { unexplained, used: new Set() };
    },
    stop: async () => undefined,
  });
  const find = (differ: (generated: GeneratedCase) => string | undefined) =>
    search(proxies(differ), { seed: 7, from: 0, to: 200, findingsMax: 3 });

  test("is reported once, with the smallest request that shows it", async () => {
    const { findings } = await find(({ channel, body }) =>
      channel === "h2" && body !== undefined ? "body" : undefined,
    );
    expect(findings).toEqual([
      {
        number: expect.any(Number),
        kinds: ["body"],
        differences: expect.stringContaining("body"),
        minimal: expect.objectContaining({ channel: "h2", method: "GET", target: "/sync", fields: [] }),
      },
    ]);
    expect(findings[0]!.minimal.body?.pieces.join("").length).toBeLessThanOrEqual(1);
  });
});

test("an input that breaks a fuzz target is reduced to the bytes that do, and not to another failure", () => {
  const target: FuzzTarget = {
    name: "made up",
    dictionary: [],
    run: (input) => {
      const text = input.toString("latin1");
      demand(!/<.*>/s.test(text), "brackets");
      demand(!text.includes("<"), "one bracket");
    },
  };
  const input = Buffer.from(`${"x".repeat(100)}<${"y".repeat(77)}>${"z".repeat(50)}`);
  expect(least(target, { input, message: faultOf(target, input)! }).toString()).toBe("<>");
});

describe("a soak", () => {
  const MIB = 2 ** 20;
  const steady = { first: 50, last: 50, peak: 50, slopePerMinute: 0 };
  const idle = { descriptors: 20, sockets: 5, live: 10 * MIB, outsideHeap: 30 * MIB };
  const good = {
    ...{ name: "left alone", reloads: { ordered: 3, done: 3 }, operations: {}, failures: 0 },
    ...{ failureSamples: [], memory: steady, descriptors: steady, sockets: steady, stderr: "" },
    kept: [],
    idle: { before: idle, after: idle },
  };
  const after = (more: object) => ({ idle: { before: idle, after: { ...idle, ...more } } });

  test.each<[string, object, object]>([
    ["nothing grows", {}, {}],
    ["an operation goes wrong", { failures: 1 }, { wrong: ["1 operations went wrong"] }],
    ["a file stays open", { kept: ["law: kept: x"] }, { wrong: ["law: kept: x"] }],
    ["sockets stay", after({ sockets: 10 }), { wrong: ["5 sockets stayed open after the load"] }],
    [
      "descriptors grow",
      { descriptors: { ...steady, slopePerMinute: 3 } },
      { beyondLimit: ["descriptors grow by 9.0 under load"] },
    ],
    [
      "memory grows",
      { memory: { ...steady, last: 50 + 65 * MIB } },
      { beyondLimit: ["memory grows by 65.0 MiB under load"] },
    ],
    [
      "objects stay",
      after({ live: 17 * MIB }),
      { beyondLimit: ["7.0 MiB more of objects stayed after the load"] },
    ],
  ])("in which %s", (_, more, verdict) => {
    expect(judgeSoak({ ...good, ...more }, 3)).toEqual({ wrong: [], beyondLimit: [], ...verdict });
  });
});
