import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseConfig } from "../../src/model/index.js";
import { NOT_SUPPORTED } from "../../src/model/notSupported.js";

/** What other proxies do and this one does not: a field or value for it is answered with what to do instead. */

test("README lists each of them, with the same words as the errors", () => {
  const readme = readFileSync(join(__dirname, "../../README.md"), "utf8");
  const section = readme.split(/^## /m).find((text) => text.startsWith("What it does not do\n"))!;
  const items = [...section.matchAll(/^\| (.+?) +\| (.+?) +\|$/gm)]
    .slice(2)
    .map(([, what, instead]) => `${what}. ${instead}`);
  const plain = (text: string): string => text.replace(/\s+/g, " ").trim().toLowerCase();
  expect(items.map(plain)).toEqual(NOT_SUPPORTED.map(({ what, instead }) => plain(`${what}. ${instead}`)));
});

/** A config with these fields more at each place, or with others in their place. */
function config(more: { upstream?: object; route?: object; server?: object; action?: object }): object {
  const action = { type: "proxy", upstream: "app", ...more.action };
  const route = { name: "all", path: "/", action, ...more.route };
  return {
    version: 1,
    listeners: [{ name: "http", address: "127.0.0.1", port: 80, protocol: "http" }],
    upstreams: [{ name: "app", url: "http://127.0.0.1:8000", ...more.upstream }],
    virtualServers: [
      {
        name: "site",
        serverNames: ["_"],
        default: true,
        listeners: ["http"],
        routes: [route],
        ...more.server,
      },
    ],
  };
}

const fixesOf = (document: object): string[] => {
  const parsed = parseConfig(document);
  return parsed.ok ? [] : parsed.problems.map(({ fix }) => fix);
};

const named = NOT_SUPPORTED.flatMap((one) => one.names.map((name) => [name, one] as const));

test.each(named)("the name %s is answered with it", (name, { what, instead }) => {
  const fix = `Not supported: ${what}. ${instead}`;
  const snake = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  expect(fixesOf(config({ upstream: { [name]: "x" } }))).toEqual([fix]);
  expect(fixesOf(config({ upstream: { [snake]: "x" } }))).toEqual([fix]);
});

test.each([
  ["addPrefix", { action: { addPrefix: "/x" } }, "a rewrite of paths"],
  ["try_files", { route: { try_files: "x" } }, "a fallback to one page"],
  ["gzip of a server", { server: { gzip: "on" } }, "compression"],
  ["max_fails", { upstream: { max_fails: 3 } }, "leaving out a server"],
  ["a base path", { upstream: { url: "http://app:8000/base" } }, "a rewrite of paths"],
  ["fastcgi", { upstream: { url: "fastcgi://127.0.0.1:9000" } }, "FastCGI"],
  ["*", { server: { serverNames: ["www.*"] } }, "a pattern as a server"],
  ["~^", { server: { serverNames: ["~^www"] } }, "a pattern as a server"],
  ["~ of a path", { route: { path: "~ \\.php$" } }, "a pattern as the path"],
])("%s is answered with what there is instead", (_, more, what) => {
  expect(fixesOf(config(more))).toEqual([expect.stringMatching(new RegExp(`^Not supported: ${what}`))]);
});

test.each([
  ["a name of elsewhere that means something else there", { server: { servers: [] } }, /^Remove the field/],
  ["a typing error", { upstream: { urll: "x" } }, /Did you mean `url`/],
  ["a bad port", { upstream: { url: "http://app:99999" } }, /^Give `http:\/\/HOST:PORT`/],
])("%s is not", (_, more, fix) => {
  expect(fixesOf(config(more))).toEqual([expect.stringMatching(fix)]);
});
