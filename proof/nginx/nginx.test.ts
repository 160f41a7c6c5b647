import { type Channel, MODE_OF } from "../wire/case.js";
import { CASES } from "./cases.js";
import { compare, formatDifference } from "./compare.js";
import { type Case, type Rule, type RuleName, RULES } from "./deviations.js";
import { HANDSHAKES } from "./cases/handshakes.js";
import { shakeHands } from "./handshakes.js";
import { findNginx } from "./nginxServer.js";
import { type Pairs, startPairs } from "./pairs.js";
import { channelsOf, observe } from "./run.js";

const nginx = findNginx();
const required = process.env["CI"] === "true";

if (nginx === undefined && !required) {
  process.stderr.write(
    "nginx is not installed: the comparison with it is skipped (Debian: apt install nginx-light)\n",
  );
}

describe("the same requests to nginx and to portico", () => {
  if (nginx === undefined) {
    (required ? test : test.skip)("nginx is installed", () => {
      throw new Error("CI needs nginx for this comparison");
    });
    return;
  }
  let pairs: Pairs;
  const usedEverywhere = new Set<RuleName>();
  beforeAll(async () => (pairs = await startPairs()));
  afterAll(() => pairs?.stop());

  test.each(CASES)("$name", async (row) => {
    const used = new Set<RuleName>();
    const complaints: string[] = [];
    for (const channel of channelsOf(row)) {
      const { nginx: theirs, portico: ours } = pairs[MODE_OF[channel]];
      const [n, p] = await Promise.all([observe(row, channel, theirs), observe(row, channel, ours)]);
      const verdict = compare({ row, channel, nginx: n.facts, portico: p.facts });
      for (const name of verdict.used) used.add(name);
      const wrong = [...verdict.unexplained.map(formatDifference), ...broken(row, n.facts, p.facts)];
      if (wrong.length > 0) complaints.push(report(channel, wrong, n.raw, p.raw));
    }
    for (const name of used) usedEverywhere.add(name);
    for (const name of row.rules ?? []) {
      if (!used.has(name)) complaints.push(`rule ${name} is listed, but explains nothing here`);
    }
    expect(complaints.join("\n\n")).toBe("");
  });

  test.each(HANDSHAKES)("J $name", async ({ offer, expect: promised }) => {
    const { nginx: theirs, portico: ours } = pairs.tls;
    const outcomes = await Promise.all([theirs, ours].map(({ ports }) => shakeHands(ports.https, offer)));
    expect(outcomes[0]).toMatchObject(promised);
    expect(outcomes[1]).toEqual(outcomes[0]);
  });

  test("every rule is used by a case", () => {
    const listed = new Set(CASES.flatMap((row) => row.rules ?? []));
    const unused = (Object.keys(RULES) as RuleName[]).filter((name) =>
      (RULES[name] as Rule).everywhere === true ? !usedEverywhere.has(name) : !listed.has(name),
    );
    expect(unused).toEqual([]);
  });
});

/** What a case promises of both. */
function broken(
  row: Case,
  nginxFacts: Readonly<Record<string, string>>,
  porticoFacts: Readonly<Record<string, string>>,
) {
  const wrong: string[] = [];
  if (nginxFacts["status"] !== String(row.status))
    wrong.push(`  nginx responds with ${nginxFacts["status"]}, not ${row.status}`);
  for (const [fact, value] of Object.entries(row.expect ?? {})) {
    if (nginxFacts[fact] !== value) wrong.push(`  ${fact} of nginx is ${nginxFacts[fact]}, not ${value}`);
    if (porticoFacts[fact] !== value)
      wrong.push(`  ${fact} of portico is ${porticoFacts[fact]}, not ${value}`);
  }
  return wrong;
}

function report(channel: Channel, wrong: readonly string[], nginxRaw: string, porticoRaw: string): string {
  const shown = (raw: string): string => JSON.stringify(raw.slice(0, 600));
  return [
    `over ${channel}:`,
    ...wrong,
    `  nginx sent   ${shown(nginxRaw)}`,
    `  portico sent ${shown(porticoRaw)}`,
  ].join("\n");
}
