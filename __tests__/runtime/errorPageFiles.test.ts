import { execFileSync } from "node:child_process";
import { chownSync, lchownSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loopback, oneServer } from "../../testkit/oneServer.js";
import { exchange } from "../../testkit/peers.js";
import { openFolder, Portico } from "../../testkit/portico.js";
import { freePort } from "../../testkit/ports.js";
import { testWith } from "../../testkit/testWith.js";
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
  return loadConfig({ file: at("portico.json"), root });
}

const FIELD = "virtualServers[0].errorPages[0].file";

test.each<readonly [string, () => void, RegExp]>([
  ["is missing", () => undefined, /does not exist \[files\.unreadable\]/],
  ["is a directory", () => mkdirSync(at("page")), /is a directory \[files\.not-a-file\]/],
  ["is empty", () => writeFileSync(at("page"), ""), /is empty \[config\.bad-error-page\]/],
  [
    "is too long",
    () => writeFileSync(at("page"), "x".repeat(32_769)),
    /has 32769 bytes \[config\.bad-error-page\]/,
  ],
  [
    "others may not read",
    () => writeFileSync(at("page"), "x", { mode: 0o640 }),
    /may not be sent to clients: file ".*" \(mode 0640\) lacks read permission for others; fix it with: chmod o\+r '.*' \[files\.unreadable\]/,
  ],
  ["is a FIFO", () => execFileSync("mkfifo", ["-m", "644", at("page")]), /is a FIFO \[files\.not-a-file\]/],
  [
    "leads to the proxy's own process",
    () => symlinkSync("/proc/self/status", at("page")),
    /may not be sent to clients: it is in "\/proc", and nothing from there is sent/,
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

testWith("root")(
  "a link that another user made is not followed; root's own is, where only root can change it",
  async () => {
    writeFileSync(at("target"), "<p>{{status}}");
    symlinkSync("target", at("page"));
    const loaded = async () => {
      const result = await load(site(at("page")));
      return result.ok ? "ok" : result.problems.map(({ message }) => message).join();
    };
    expect(await loaded()).toBe("ok");
    lchownSync(at("page"), 42_424, 42_424);
    expect(await loaded()).toMatch(
      /^may not be sent to clients: ".*\/page" is a symbolic link that a user other/,
    );
    lchownSync(at("page"), 0, 0);
    chownSync(folder, 42_424, 42_424);
    expect(await loaded()).toMatch(/is a symbolic link that a user other than root can have made/);
  },
);

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
