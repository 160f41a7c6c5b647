import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { ROOT } from "../../build/paths.js";
import { siteConfig } from "../../testkit/siteConfig.js";
import { run } from "../../src/cli/program.js";
import { linesOfJson } from "../../src/cli/sarif.js";
import { FINDINGS } from "../../src/model/review/findings.js";

/** `portico check --against OLD`: what it says of two files, in each form, and its exit codes. */

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), "portico against "));
  write("old.json", OLD);
  write("opened.json", { ...OLD, trustedProxies: ["10.0.0.0/8"], virtualServers: withOffice(true) });
  write("closed.json", { ...OLD, virtualServers: withOffice(false) });
  write("bad.json", { version: 1 });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const OLD = siteConfig({ mode: "plain" });

/** The application with one route more, or with its first one only. */
function withOffice(more: boolean): unknown {
  return OLD.virtualServers.map((server) => {
    const proxied = server.routes.filter(({ action }) => action.type === "proxy");
    if (proxied.length === 0) return server;
    const office = { ...proxied[0]!, name: "office", path: "/office", match: "segment" };
    return {
      ...server,
      routes: more ? [...server.routes, office] : server.routes.filter((one) => one !== proxied[0]),
    };
  });
}

const write = (name: string, value: unknown): void =>
  writeFileSync(path.join(folder, name), JSON.stringify(value, undefined, 2));

async function against(
  old: string,
  now: string,
  ...args: string[]
): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ["", ""];
  const at = (name: string): string => (name === "-" ? name : path.join(folder, name));
  const code = await run(["check", "--against", at(old), at(now), ...args], {
    out: (text) => (out += text.replaceAll(folder, "")),
    err: (text) => (err += text.replaceAll(folder, "")),
  });
  return { code, out, err };
}

test("what opens is listed, the gravest first, and the exit code is 1", async () => {
  const { code, out } = await against("old.json", "opened.json");
  expect(code).toBe(1);
  expect(out).toBe(`\
error: trustedProxies[0]: the proxy trusts more addresses to name the client [trust.proxies]
    old:  none
    new:  10.0.0.0/8
error: virtualServers[1].routes[${officeAt()}]: requests reach an application or files; the proxy itself responded to them before [way.opened]
    old:  404
    new:  http://127.0.0.1:8000, writes by method
    for:  http 0.0.0.0:80, ${names()}: /office /office/*
/opened.json against /old.json: 2 differences, of which 2 open access or may open it
`);
});

const application = OLD.virtualServers.find(({ routes }) =>
  routes.some(({ action }) => action.type === "proxy"),
)!;
const officeAt = (): number => application.routes.length;
const names = (): string => application.serverNames.join(", ");

test("what only closes is noted, and the exit code is 0", async () => {
  const { code, out } = await against("old.json", "closed.json");
  expect(code).toBe(0);
  expect(out).toMatch(/^note: virtualServers\[1\]\.routes\[0\] of the old config: .* \[way\.closed\]\n/);
  expect(out).toMatch(/: 1 difference, of which 0 open access or may open it\n$/);
});

test("a config against itself", async () => {
  expect(await against("old.json", "old.json")).toEqual({
    code: 0,
    out: "/old.json against /old.json: no difference for clients\n",
    err: "",
  });
});

test("--json", async () => {
  const { code, out } = await against("old.json", "opened.json", "--json");
  expect([code, JSON.parse(out)]).toMatchObject([
    1,
    {
      file: "/opened.json",
      against: "/old.json",
      ok: false,
      opened: 2,
      findings: [{ id: "trust.proxies", level: "error", place: "trustedProxies[0]" }, { id: "way.opened" }],
    },
  ]);
});

test("--sarif names rule, level, file and line of each finding", async () => {
  const { code, out } = await against("old.json", "opened.json", "--sarif");
  expect(code).toBe(1);
  const log = JSON.parse(out);
  expect(log).toMatchObject({ version: "2.1.0", runs: [{ tool: { driver: { name: "portico" } } }] });
  const [{ tool, results }] = log.runs;
  expect(tool.driver.rules.map(({ id }: { id: string }) => id)).toEqual(Object.keys(FINDINGS));
  for (const { ruleId, ruleIndex } of results) expect(tool.driver.rules[ruleIndex].id).toBe(ruleId);
  const text = readFileSync(path.join(folder, "opened.json"), "utf8").split("\n");
  expect(results[0]).toMatchObject({
    level: "error",
    message: { text: expect.stringMatching(/ Old: none\. New: 10\.0\.0\.0\/8\.$/) },
    locations: [
      {
        physicalLocation: {
          artifactLocation: {
            uri: expect.stringMatching(/^file:\/\/.*portico%20against%20.*\/opened\.json$/),
          },
        },
        logicalLocations: [{ fullyQualifiedName: "trustedProxies[0]", kind: "member" }],
      },
    ],
  });
  expect(text[results[0].locations[0].physicalLocation.region.startLine - 1]).toContain('"10.0.0.0/8"');
});

test.each<[string, string, string, number]>([
  ["an old config that is refused", "bad.json", "old.json", 2],
  ["a new config that is refused", "old.json", "bad.json", 1],
  ["an old config that is not there", "none.json", "old.json", 2],
])("%s", async (_, old, now, code) => {
  for (const form of [[], ["--json"], ["--sarif"]]) {
    const outcome = await against(old, now, ...form);
    expect(outcome).toMatchObject({ code, err: "" });
    expect(outcome.out).toMatch(/config\.missing-field|files\.unreadable/);
    if (form.length > 0) expect(() => JSON.parse(outcome.out)).not.toThrow();
  }
});

test.each([
  [["--sarif", "--json"], /'--json' and '--sarif' cannot be used together/],
  [["--live"], /'--live' and '--against' cannot be used together/],
])("%j is wrong usage", async (args, message) => {
  const { code, err } = await against("old.json", "old.json", ...args);
  expect([code, err]).toEqual([2, expect.stringMatching(message)]);
});

test("--sarif without --against is wrong usage", async () => {
  let err = "";
  const code = await run(["check", "--sarif"], { out: () => undefined, err: (text) => (err += text) });
  expect([code, err]).toEqual([2, expect.stringContaining("'--sarif' needs --against")]);
});

test("standard input is one of the two", async () => {
  expect(await against("-", "-")).toMatchObject({ code: 2, err: expect.stringContaining("is read once") });
});

test("every kind of finding is in docs/reviews.md, with its level and meaning", () => {
  const page = readFileSync(path.join(ROOT, "docs/reviews.md"), "utf8").replace(/ +/g, " ");
  for (const [id, [level, meaning]] of Object.entries(FINDINGS))
    expect(page).toContain(`| \`${id}\` | ${level} | ${meaning} |\n`);
});

test("lines of a document: of each value, and of what would contain a field that is left out", () => {
  const text = '{\n "a": {"b,\\"": [1,\n {"c": true}]},\n\n "d":\n [ [], {} ]\n}';
  const line = linesOfJson(text);
  expect(
    [
      "",
      "a",
      "a.e",
      'a.b,"',
      'a.b,"[0]',
      'a.b,"[1]',
      'a.b,"[1].c',
      'a.b,"[1].none',
      "d",
      "d[1]",
      "d[1].x.y",
    ].map(line),
  ).toEqual([1, 2, 2, 2, 2, 3, 3, 3, 6, 6, 6]);
});
