import { spawnSync } from "node:child_process";
import { PROBLEM_CODES } from "../../src/model/index.js";
import { sharedBundle } from "../../testkit/sharedBundle.js";

/** Commands of the bundle that say what would happen, and what was meant; configs come through standard input. */

let bundle: string;
beforeAll(async () => {
  bundle = await sharedBundle();
});

const CONFIG = JSON.stringify({
  version: 1,
  listeners: [{ name: "http", address: "127.0.0.1", port: 8099, protocol: "http" }],
  upstreams: [{ name: "app", url: "http://127.0.0.1:8000" }],
  virtualServers: [
    {
      name: "site",
      serverNames: ["_"],
      default: true,
      listeners: ["http"],
      errorPages: [{ statuses: [404], file: "/etc/portico/pages/gone.html" }],
      routes: [
        { name: "page", path: "/page", action: { type: "staticFiles", directory: "/srv/page" } },
        { name: "away", path: "/away", action: { type: "redirect", host: "files.example.org" } },
        { name: "fixed", path: "/fixed", action: { type: "respond", status: 200, body: "one\ntwo\n" } },
        { name: "dav", path: "/dav", action: { type: "proxy", upstream: "app" } },
      ],
    },
  ],
});

function portico(args: readonly string[], input = CONFIG) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [bundle, ...args], {
    input,
    encoding: "utf8",
  });
  return { status, stdout, stderr };
}

describe("resolve", () => {
  const resolve = (url: string, ...more: readonly string[]) =>
    portico(["resolve", `http://127.0.0.1:8099${url}`, "--config", "-", ...more]);

  test.each([
    ["/page/a%20b", [], "the file /srv/page/a b"],
    ["/away/x?y", [], "301 to https://files.example.org/away/x?y"],
    ["/fixed", [], "200, a fixed response"],
    ["/none", [], "404, an error page"],
    ["/none", ["--header", "Accept: text/html"], "404, the error page /etc/portico/pages/gone.html"],
    ["/dav//x%2F", ["--method", "PUT"], "PUT /dav//x%2F HTTP/1.1"],
    ["/dav/x", ["--header", "X-Site: a", "--header", "X-Site: b"], "x-site: a, b"],
    ["/dav/x", ["--client", "203.0.113.9"], "x-real-ip: 203.0.113.9"],
  ])("%s %j gets %j", (url, more, response) => {
    const { status, stdout, stderr } = resolve(url, ...more);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout.split("\n").map((line) => line.replace(/^ *(?:response)? +/, ""))).toContain(response);
  });

  test("as JSON it is what `resolve` of unit tests returns", () => {
    expect(JSON.parse(resolve("/away", "--json").stdout)).toMatchObject({
      ok: true,
      file: "/dev/stdin",
      listener: "http",
      virtualServer: "site",
      route: "away",
      kind: "redirect",
      location: "https://files.example.org/away",
    });
  });

  test.each([
    [["resolve", "ftp://a/", "--config", "-"], CONFIG, 2, "ftp://a/: is not an absolute URL"],
    [["resolve", "https://a/", "--config", "-", "--json"], CONFIG, 2, '"config.unknown-reference"'],
    [["resolve", "http://a/", "--config", "-", "--header", "x"], CONFIG, 2, "Give NAME:VALUE"],
    [["resolve", "http://a/", "--config", "-", "--listener", "x"], CONFIG, 2, 'received: "x"'],
    [["resolve", "http://a/", "--config", "-"], "{", 1, "[config.not-json]"],
    [["resolve", "http://a/", "--config", "-", "--json"], "{}", 1, '"config.missing-field"'],
    [["resolve", "http://a/", "--config", "/none"], CONFIG, 1, "/none: does not exist [files.unreadable]"],
  ])("%j is wrong", (args, input, status, message) => {
    const done = portico(args, input);
    expect(done.status).toBe(status);
    expect(`${done.stdout}${done.stderr}`).toContain(message);
  });
});

describe("a config from standard input", () => {
  test.each([
    [["check", "--no-files", "-"], 0, "/dev/stdin: ok (1 listener, 1 virtual server, 4 routes)\n"],
    [["check", "-"], 1, "/srv/page"],
    [["check", "--json", "-"], 1, '"ok": false'],
    [["doctor", "--elsewhere", "--config", "-"], 1, "-      The proxy's config is valid [config]\n"],
  ])("%j", (args, status, message) => {
    const done = portico(args);
    expect(done.stdout).toContain(message);
    expect(done).toMatchObject({ status, stderr: "" });
  });
});

describe("explain", () => {
  test("every code has its meaning and its fix", () => {
    const { stdout } = portico(["explain", "--json"]);
    expect(JSON.parse(stdout)).toEqual(PROBLEM_CODES);
  });

  test.each([["config.unknown-reference"], ["[config.unknown-reference]"]])("%s", (code) => {
    const { status, stdout, stderr } = portico(["explain", code]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toMatch(/^config\.unknown-reference\n\n\S[^]*\[config\.unknown-reference\]\n[^]*fix: /);
    expect(stdout).not.toContain("```");
  });

  test("as JSON", () => {
    const { stdout } = portico(["explain", "config.not-json", "--json"]);
    expect(JSON.parse(stdout)).toEqual({
      code: "config.not-json",
      text: expect.stringContaining("The file is not valid JSON"),
      fix: PROBLEM_CODES["config.not-json"],
    });
  });

  test("a code that there is not is wrong usage, with the one that is near", () => {
    const { status, stdout, stderr } = portico(["explain", "config.unknown-referense"]);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toContain("Did you mean config.unknown-reference?");
  });
});

test.each([
  [["version", "--json"], 0, { portico: expect.any(String), node: process.versions.node }],
  [["reload", "--json", "--control", "/none"], 1, { ok: false, problems: [{ code: "control.not-running" }] }],
  [
    ["upgrade", "--json", "--control", "/none"],
    1,
    { ok: false, problems: [{ code: "control.not-running" }] },
  ],
  [
    ["certificates", "--json", "--control", "/none"],
    1,
    { ok: false, problems: [{ code: "control.not-running" }] },
  ],
  [
    ["certificates", "renew", "--json", "--control", "/none"],
    1,
    { ok: false, problems: [{ code: "control.not-running" }] },
  ],
])("%j prints JSON", (args, status, printed) => {
  const done = portico(args);
  expect(done.status).toBe(status);
  expect(JSON.parse(done.stdout)).toMatchObject(printed);
});

describe("colours", () => {
  /** What a terminal gets. */
  const onTerminal = (variables: string) => {
    const command = `printf '{' | ${variables} '${process.execPath}' '${bundle}' check -`;
    const env = { PATH: process.env["PATH"], TERM: "xterm-256color" };
    return spawnSync("script", ["--quiet", "--command", command, "/dev/null"], { encoding: "utf8", env })
      .stdout;
  };
  test("are where a terminal is", () => {
    expect(onTerminal("")).toContain("\u001b[36m    fix:\u001b[0m");
  });

  test.each([["NO_COLOR=1"], ["TERM=dumb"]])("are not with %s", (variables) => {
    expect(onTerminal(variables)).toContain("    fix:");
    expect(onTerminal(variables)).not.toContain("\u001b");
  });

  test("are not in a pipe", () => {
    expect(portico(["check", "-"], "{").stdout).not.toContain("\u001b");
  });
});
