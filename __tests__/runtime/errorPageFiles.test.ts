import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loopback, oneServer } from "../../testkit/oneServer.js";
import { exchange } from "../../testkit/peers.js";
import { openFolder, Portico } from "../../testkit/portico.js";
import { freePort } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";
import { formatProblem, parseConfig, type ProxyConfigInput } from "../../src/model/index.js";
import { loadConfig, loadedStateOf } from "../../src/runtime/load/loadConfig.js";

/** Pages of the administrator's that are in files. */

let folder: string;
beforeEach(() => void (folder = openFolder()));

const at = (name: string): string => join(folder, name);

/** Serves nothing, so that everything is 404. */
const site = (file: string, port = 80): ProxyConfigInput =>
  oneServer({
    logs: { access: "off", error: "off" },
    listeners: [loopback("http", port)],
    routes: [],
    server: { errorPages: [{ statuses: [404], file }] },
  });

async function load(config: ProxyConfigInput, root?: string) {
  writeFileSync(at("portico.json"), JSON.stringify(config));
  return loadConfig({ file: at("portico.json"), ...(root === undefined ? {} : { root }) });
}

const FIELD = "virtualServers[0].errorPages[0].file";

test.each<readonly [string, () => void, RegExp]>([
  ["is missing", () => undefined, /does not exist \[files\.unreadable\]/],
  ["is a directory", () => mkdirSync(at("page")), /is a directory \[files\.unreadable\]/],
  ["is empty", () => writeFileSync(at("page"), ""), /is empty \[config\.bad-error-page\]/],
  [
    "is too long",
    () => writeFileSync(at("page"), "x".repeat(32_769)),
    /has 32769 bytes \[config\.bad-error-page\]/,
  ],
  [
    "has a placeholder of its own",
    () => writeFileSync(at("page"), "{{error}}"),
    /contains an unknown placeholder \[config\.bad-error-page\]\n +received: "\{\{error\}\}"\n +allowed: +\{\{status\}\}, /,
  ],
])("a file that %s keeps the config from being loaded", async (_what, make, expected) => {
  make();
  const loaded = await load(site(at("page")));
  const text = loaded.ok ? "" : loaded.problems.map(formatProblem).join("\n");
  expect(text).toMatch(expected);
  expect(text.startsWith(`${FIELD} (${at("page")}): `)).toBe(true);
});

test("a file is reported once, however many virtual servers name it, and is looked up below the root", async () => {
  const config = site("/etc/page");
  const [server] = config.virtualServers;
  const second = { ...server!, name: "second", default: false, serverNames: ["b"] };
  const both = { ...config, virtualServers: [server!, second] };
  const missing = await load(both, folder);
  expect(missing.ok ? [] : missing.problems.map(({ path }) => path)).toEqual([
    `${FIELD} (${at("etc/page")})`,
  ]);
  mkdirSync(at("etc"));
  writeFileSync(at("etc/page"), "<p>{{status}} é");
  const loaded = await load(both, folder);
  if (!loaded.ok) throw new Error(loaded.problems.map(formatProblem).join("\n"));
  for (const { errorPages } of loaded.value.config.virtualServers)
    expect(errorPages).toEqual([{ statuses: [404], html: "<p>{{status}} é" }]);
  // What is loaded is a valid config again, as `preview` wants it.
  expect(parseConfig(loaded.value.config).ok).toBe(true);
});

test("a page that changed is a config that changed", async () => {
  const state = async () => {
    const loaded = await load(site(at("page")));
    if (!loaded.ok) throw new Error("does not load");
    return loadedStateOf(loaded.value).config;
  };
  writeFileSync(at("page"), "one");
  const one = await state();
  expect(await state()).toBe(one);
  writeFileSync(at("page"), "two");
  expect(await state()).not.toBe(one);
});

test("are read at the start and at a reload; one that is gone by then changes nothing", async () => {
  const port = await freePort();
  const page = (text: string): void => writeFileSync(at("page"), `${text} {{status}}`);
  page("one");
  const portico = await Portico.start(site(at("page"), port));
  const request = "GET / HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\nConnection: close\r\n\r\n";
  const asked = async (): Promise<string> => (await exchange(port, request)).body;
  expect(await asked()).toBe("one 404");
  page("two");
  expect(await asked()).toBe("one 404");
  portico.signal("SIGHUP");
  await eventually(async () => (await asked()) === "two 404", "for the new page");
  rmSync(at("page"));
  portico.signal("SIGHUP");
  await eventually(() => portico.errors.includes(FIELD), "for the refusal", { seen: () => portico.errors });
  expect(await asked()).toBe("two 404");
  await portico.stop();
});
