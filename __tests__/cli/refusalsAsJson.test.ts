import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "../../src/cli/program.js";
import { nodeFixes } from "../../src/model/host/nodeReleases.js";
import { VERSION } from "../../src/model/text/version.js";

/** Scripts read `--json`: a command that cannot do its work prints JSON as well then, and people a text. */

async function portico(args: string): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ["", ""];
  const code = await run(args.split(" "), { out: (text) => (out += text), err: (text) => (err += text) });
  return { code, out, err };
}

/** In place of `/none`: some commands take a lock below their root before they look for what is not there. */
const folder = mkdtempSync(join(tmpdir(), "portico-refusals-"));
afterAll(() => rmSync(folder, { recursive: true }));
const below = <T>(value: T): T => JSON.parse(JSON.stringify(value).replaceAll("/none", folder)) as T;

const NOTHING = "/none/etc/portico";
type Row = readonly [command: string, code: string, path: string, more?: object];
const ROWS: readonly Row[] = [
  ["check /none/a.json", "files.unreadable", "/none/a.json", { file: "/none/a.json" }],
  ["check --live /none/a.json", "files.unreadable", "/none/a.json", { file: "/none/a.json" }],
  ["resolve http://a/ --config /none/a.json", "files.unreadable", "/none/a.json", { file: "/none/a.json" }],
  ["why 0123abcd --config /none/a.json", "files.unreadable", "/none/a.json", { file: "/none/a.json" }],
  ["log --root /none", "files.unreadable", `${NOTHING}/portico.json`, { file: `${NOTHING}/portico.json` }],
  ["replay /none/log --config /none/a.json", "files.unreadable", "/none/a.json", { file: "/none/a.json" }],
  ["preview /none/a.json", "files.unreadable", "/none/a.json", { file: "/none/a.json" }],
  ["activate --root /none", "files.unreadable", `${NOTHING}/deployment.json`, { rolledBack: false }],
  ["settings show --root /none", "files.unreadable", `${NOTHING}/deployment.json`, { files: [] }],
  ["settings apply --root /none", "files.unreadable", `${NOTHING}/deployment.json`, { files: [] }],
  ...[
    ...["status", "reload", "upgrade", "certificates", "certificates renew"],
    ...["upstreams", "upstreams drain a b", "upstreams undrain a b"],
  ].map((command): Row => [`${command} --control /none/c`, "control.not-running", "/none/c"]),
];

test.each(ROWS.map((row) => [row[0], row] as const))("%s", async (_name, row) => {
  const [command, code, path, more = {}] = below(row);
  const asJson = await portico(`${command} --json`);
  expect({ ...asJson, out: JSON.parse(asJson.out) }).toEqual({
    code: 1,
    out: { ...more, ok: false, problems: [expect.objectContaining({ code, path })] },
    err: "",
  });
  const text = await portico(command);
  expect([text.code, text.out + text.err]).toEqual([1, expect.stringContaining(`[${code}]`)]);
  expect(text.out + text.err).toContain(path);
  expect(text.out + text.err).not.toContain('"ok"');
});

test("the versions, each by its name", async () => {
  const { code, out, err } = await portico("version --json");
  const { node, openssl } = process.versions;
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(JSON.parse(out)).toEqual({
    portico: VERSION,
    node,
    openssl,
    nodeFixes: nodeFixes(node, Date.now())?.text,
  });
});
