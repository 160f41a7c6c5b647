import {
  configJsonSchema,
  formatProblem,
  parseConfig,
  parseConfigText,
  PROBLEM_CODES,
  problem,
  type Problem,
  type ProblemCode,
  ProblemError,
  type ProxyConfigInput,
} from "../../src/model/index.js";
import { cpuMs } from "../../testkit/growth.js";

/** The smallest valid config; every case below breaks one thing in a copy of it. */
function minimal(): Record<string, unknown> {
  return structuredClone({
    version: 1,
    listeners: [{ name: "http", address: "0.0.0.0", port: 80, protocol: "http" }],
    upstreams: [{ name: "web", url: "http://127.0.0.1:8000" }],
    virtualServers: [
      {
        name: "application",
        serverNames: ["sync.example"],
        listeners: ["http"],
        default: true,
        routes: [{ name: "web", path: "/sync", match: "prefix", action: { type: "proxy", upstream: "web" } }],
      },
    ],
  } satisfies ProxyConfigInput);
}

const TLS = { certificate: "/c.pem", key: "/k.pem" };

/** Sets a dotted path (`listeners.0.port`); undefined deletes. */
function broken(path: string, value: unknown): unknown {
  const config = minimal();
  const steps = path.split(".");
  const last = steps.pop()!;
  const owner = steps.reduce<Record<string, unknown>>(
    (at, step) => at[step] as Record<string, unknown>,
    config,
  );
  if (value === undefined) delete owner[last];
  else owner[last] = value;
  return config;
}

function problemsOf(input: unknown): readonly Problem[] {
  const result = parseConfig(input);
  return result.ok ? [] : result.problems;
}

const route = (more: object): object => ({
  name: "r",
  path: "/r",
  action: { type: "respond", status: 200 },
  ...more,
});
const redirect = (more: object): object => route({ action: { type: "redirect", ...more } });
const server = (name: string, more: object = {}): object => ({
  name,
  serverNames: ["_"],
  listeners: ["http"],
  default: true,
  routes: [],
  ...more,
});

/** What is set, to what, the code, and where the problem is: at that place, below it, or elsewhere. */
type Case = readonly [at: string, value: unknown, code: ProblemCode, where?: string];

const FIELD_CASES: readonly Case[] = [
  ["version", "1", "config.not-one-of"],
  ["version", undefined, "config.missing-field"],
  ["listeners", undefined, "config.missing-field"],
  ["listeners", [], "config.out-of-range"],
  ["listeners", {}, "config.wrong-type"],
  ["listeners.0.port", 0, "config.out-of-range"],
  ["listeners.0.port", 65536, "config.out-of-range"],
  ["listeners.0.port", 80.5, "config.wrong-type"],
  ["listeners.0.address", "[::]", "config.bad-address"],
  ["listeners.0.prot", 80, "config.unknown-field"],
  ["listeners.0.name", "a b", "config.bad-name"],
  ["trustedProxies", ["10.0.0.0/33"], "config.bad-address", "[0]"],
  ["trustedProxies", ["10.0.0.0/8/8"], "config.bad-address", "[0]"],
  ...["", "X_Real_IP", "X.Real.IP", "X Real", "Host", "hOst", "Proxy", "TE", "Connection", "Forwarded"].map(
    (name): Case => ["clientAddressField", name, "config.bad-header"],
  ),
  ...["", "REMOTE_USER", "remote.user", "Host", "proxy", "PROXY", "Upgrade", "Content-Length"].map(
    (name): Case => ["virtualServers.0.routes.0.action.trustedFields", [name], "config.bad-header", "[0]"],
  ),
  ...["files.example.org", "[2001:db8::20]", "0.0.0.0", "::"].map((holderAddress): Case => [
    "certificateAuthorities",
    [{ name: "ca", agreeToTerms: true, holderAddress }],
    "config.bad-address",
    "[0].holderAddress",
  ]),
  ["workers", 0, "config.out-of-range"],
  [
    "virtualServers.0.routes.0.action",
    { type: "respond", status: 200, contentType: "a\nb" },
    "config.bad-text",
    ".contentType",
  ],
  ["upstreams.0.url", "ftp://127.0.0.1:1", "config.bad-url"],
  ["upstreams.0.url", "http://127.0.0.1:99999", "config.bad-url"],
  ["upstreams.0.url", "http://u:p@h:1", "config.bad-url"],
  ["upstreams.0.readTimeoutMs", 0, "config.out-of-range"],
  ["upstreams.0.readTimeoutMs", 2 ** 31, "config.out-of-range"],
  ["virtualServers.0.serverNames", ["A.example"], "config.bad-server-name", "[0]"],
  ["virtualServers.0.serverNames", ["[::1]"], "config.bad-server-name", "[0]"],
  ["virtualServers.0.serverNames", ["1.2.3"], "config.bad-server-name", "[0]"],
  ["virtualServers.0.serverNames", [], "config.out-of-range"],
  ["virtualServers.0.routes.0.path", "sync", "config.bad-route-path"],
  ["virtualServers.0.routes.0.path", "/a//b", "config.bad-route-path"],
  ["virtualServers.0.routes.0.path", "/a/../b", "config.bad-route-path"],
  ["virtualServers.0.routes.0.path", "/a%20b", "config.bad-route-path"],
  ["virtualServers.0.routes.0.action.type", "proxi", "config.not-one-of"],
  [
    "notifications",
    { targets: [{ type: "webhook", name: "a", url: "http://alerts.example.org/" }] },
    "config.notification-url",
    ".targets[0].url",
  ],
  ["virtualServers.0.routes.0.action.setHeaders", { "X-A": "a\r\nb" }, "config.bad-header", ".X-A"],
  ["virtualServers.0.routes.0.accessLog", { path: "log" }, "config.bad-file-path", ".path"],
  ["virtualServers.0.routes.0.accessLog", { path: "/dev/stdout" }, "config.bad-file-path", ".path"],
  ["virtualServers.0.routes.0.errorLog", { path: "/proc/self/fd/2" }, "config.bad-file-path", ".path"],
  ["virtualServers.0.routes.0.accessLog", "on", "config.not-one-of"],
];

/** The same for rules that span fields. */
const CROSS_CASES: readonly Case[] = [
  ["virtualServers.0.routes.1", route({ name: "web" }), "config.duplicate-name", ".name"],
  ["virtualServers.0.listeners.1", "https", "config.unknown-reference"],
  ["listeners.1", { name: "b", address: "0.0.0.0", port: 80, protocol: "http" }, "config.duplicate-listener"],
  ["listeners.1", { name: "b", address: "192.0.2.1", port: 80, protocol: "http" }, "config.port-conflict"],
  [
    "virtualServers.1",
    server("b", { default: false, serverNames: ["sync.example"] }),
    "config.duplicate-server-name",
    ".serverNames[0]",
  ],
  ["virtualServers.0.routes.1", route({ path: "/sync", match: "prefix" }), "config.duplicate-route", ".path"],
  ["virtualServers.0.routes.1", redirect({ scheme: "http", port: 80 }), "config.redirect-loop", ".action"],
  ["virtualServers.0.routes.1", redirect({ keep: "rest" }), "config.bad-redirect-path", ".action.keep"],
  [
    "virtualServers.0.routes.1",
    redirect({ keep: "query", path: "/a?b" }),
    "config.bad-redirect-path",
    ".action.keep",
  ],
  ["upstreams.0.url", "http://localhost:80", "config.proxy-loop"],
  ["virtualServers.0.routes.0.action", { type: "staticFiles" }, "config.missing-field", ".directory"],
  ...[204, 205, 304].map((status): Case => [
    "virtualServers.0.routes.1",
    route({ action: { type: "respond", status, body: "x" } }),
    "config.body-not-allowed",
    ".action.body",
  ]),
];

describe("parseConfig", () => {
  test("fills every default, and freezes all of it", () => {
    const result = parseConfig(minimal());
    if (!result.ok) throw new Error(result.problems.map(formatProblem).join("\n"));
    const { value } = result;
    expect(value.limits).toMatchObject({
      requestLineBytesMax: 8192,
      headBytesMax: 32768,
      keepAliveRequestsMax: 1000,
    });
    expect(value.timeouts).toMatchObject({ requestHeadMs: 60_000, keepAliveMs: 75_000 });
    expect(value.virtualServers[0]!.routes[0]).toMatchObject({
      requestBodyBytesMax: 0,
      requestBodyTimeoutMs: 60_000,
    });
    expect(value.virtualServers[0]!.routes[0]!.action).toMatchObject({
      strip: "none",
      upgrades: ["websocket"],
    });
    expect(() => ((value.virtualServers as unknown[]).length = 0)).toThrow(TypeError);
    expect(Object.isFrozen(value.virtualServers[0]!.routes[0]!.action)).toBe(true);
  });

  test.each(
    [...FIELD_CASES, ...CROSS_CASES].map(([path, value, code, where = ""]) => {
      const here = path.replace(/\.(\d+)/g, "[$1]");
      return [path, value, code, /^(?:[.[]|$)/.test(where) ? here + where : where] as const;
    }),
  )("%s = %j is %s at %s", (path, value, code, at) => {
    const problems = problemsOf(broken(path, value));
    expect(problems.map((p) => [p.code, p.path])).toContainEqual([code, at]);
    const found = problems.find((p) => p.code === code)!;
    expect(found.fix).not.toBe("");
    expect(PROBLEM_CODES).toHaveProperty([found.code]);
  });

  test("a request field that belongs to the connection, the framing or the proxy cannot be set", () => {
    const bad = [
      ...["Connection", "keep-alive", "Proxy-Connection", "Transfer-Encoding", "Upgrade", "TE", "Trailer"],
      ...["HTTP2-Settings", "Content-Length", "HOST", "Expect", "", "a b", "a_b", "a:"],
    ];
    const setHeaders = Object.fromEntries([...bad, "Hosts", "X-Expect"].map((name) => [name, "x"]));
    const at = "virtualServers[0].routes[0].action.setHeaders";
    expect(
      problemsOf(broken("virtualServers.0.routes.0.action.setHeaders", setHeaders)).map((p) => [
        p.code,
        p.path,
      ]),
    ).toEqual(bad.map((name) => ["config.bad-header", `${at}.${name}`]));
  });

  test("lists and texts have as many items and characters as they may", () => {
    const names = (length: number) =>
      broken("listeners.0.tls", {
        acme: { authority: "ca", names: Array.from({ length }, (_, i) => `n${i}.example`) },
      });
    const body = (length: number) =>
      broken("virtualServers.0.routes.0.action", { type: "respond", status: 200, body: "x".repeat(length) });
    const outside = (config: unknown): string[] =>
      problemsOf(config).flatMap(({ code, path }) => (code === "config.out-of-range" ? [path] : []));
    expect([1, 100].map(names).flatMap(outside)).toEqual([]);
    expect([0, 101].map(names).flatMap(outside)).toEqual(Array(2).fill("listeners[0].tls.acme.names"));
    expect(outside(body(65_536))).toEqual([]);
    expect(outside(body(65_537))).toEqual(["virtualServers[0].routes[0].action.body"]);
  });

  test("reports every problem at once, not the first", () => {
    const config = minimal() as { listeners: object[]; upstreams: object[] };
    config.listeners[0] = { name: "http", address: "x", port: 0, protocol: "ftp" };
    config.upstreams[0] = { name: "", url: "" };
    expect(problemsOf(config).map((p) => p.path)).toEqual(
      expect.arrayContaining([
        "listeners[0].address",
        "listeners[0].port",
        "listeners[0].protocol",
        "upstreams[0].name",
        "upstreams[0].url",
      ]),
    );
  });

  test("suggests the field that was probably meant", () => {
    expect(problemsOf(broken("listeners.0.protocl", "http"))[0]).toMatchObject({
      fix: "Did you mean `protocol`?",
    });
    expect(problemsOf(broken("virtualServers.0.routes.0.action.stripp", "raw"))[0]).toMatchObject({
      path: "virtualServers[0].routes[0].action.stripp",
      fix: "Did you mean `strip`?",
    });
    expect(problemsOf(broken("virtualServers.0.routes.0.accessLog", { paht: "/l" }))).toContainEqual(
      expect.objectContaining({ fix: "Did you mean `path`?" }),
    );
  });

  test("of an unknown kind, the kind is what was received, and not the object that has it", () => {
    const kind = ["virtualServers.0.routes.0.action", { type: "proxi", upstream: "web" }] as const;
    expect(problemsOf(broken(...kind))).toEqual([
      expect.objectContaining({ code: "config.not-one-of", received: '"proxi"' }),
    ]);
    expect(problemsOf(broken(kind[0], { upstream: "web" }))).toEqual([
      expect.objectContaining({ code: "config.missing-field", path: expect.stringMatching(/action\.type$/) }),
    ]);
  });

  const policy = { minVersion: "TLSv1.1", maxVersion: "TLSv1.2", ciphers: "A", curves: ["a b"] };

  test.each<[string, unknown, [string, string][]]>([
    ["virtualServers.0.routes.0.accessLog", { path: "log" }, [["config.bad-file-path", ".path"]]],
    ["virtualServers.0.routes.0.accessLog", {}, [["config.missing-field", ".path"]]],
    ["virtualServers.0.routes.0.accessLog", { path: "/l", pth: 1 }, [["config.unknown-field", ".pth"]]],
    [
      "virtualServers.0.routes.0.accessLog",
      { pth: "/l" },
      [
        ["config.missing-field", ".path"],
        ["config.unknown-field", ".pth"],
      ],
    ],
    // Nearer is the kind of the two that has fewer mistakes.
    ["virtualServers.0.routes.0.accessLog", { stream: "x" }, [["config.not-one-of", ".stream"]]],
    ["virtualServers.0.routes.0.accessLog", ["/l"], [["config.not-one-of", ""]]],
    ["virtualServers.0.routes.0.accessLog", "/l", [["config.not-one-of", ""]]],
    ["listeners.0.tls", { ...TLS, policy: "old" }, [["config.not-one-of", ".policy"]]],
    ["listeners.0.tls", { ...TLS, policy: 1 }, [["config.not-one-of", ".policy"]]],
    [
      "listeners.0.tls",
      { ...TLS, policy: { ...policy, minVersion: "TLSv1.2", ciphers: "A B", curves: ["X25519"] } },
      [["config.bad-cipher-string", ".policy.ciphers"]],
    ],
    [
      "listeners.0.tls",
      { ...TLS, policy },
      [
        ["config.bad-name", ".policy.curves[0]"],
        ["config.not-one-of", ".policy.minVersion"],
      ],
    ],
  ])("for a field of several kinds, the problems of the kind that was meant: %s = %j", (path, value, all) => {
    const at = path.replace(/\.(\d+)/g, "[$1]");
    const found = problemsOf(broken(path, value)).map((p) => [p.code, p.path]);
    expect(found.sort()).toEqual(all.map(([code, rest]) => [code, at + rest]));
  });

  test.each([
    ["version", undefined, "1"],
    ["listeners", undefined, "a list"],
    ["listeners.0.port", undefined, "a whole number from 1 to 65535"],
    ["listeners.0.protocol", undefined, "http, https"],
    [
      "virtualServers.0.routes.0.action.type",
      undefined,
      '"proxy", "staticFiles", "redirect", "respond" or "status"',
    ],
    ["upstreams.0.url", undefined, "`url` for one server, or `servers` for several"],
    [
      "virtualServers.0.routes.0.accessLog",
      "on",
      '"off"; or an object with path, format; or an object with stream, format',
    ],
    [
      "listeners.0.tls",
      { ...TLS, policy: 1 },
      '"file-sync", "file-sync-tls13", "mozilla-intermediate", "mozilla-modern"; or an object with minVersion, maxVersion, ciphers, curves, preferServerCiphers, sessionTimeoutSeconds',
    ],
    [
      "virtualServers.0.routes.0.action",
      undefined,
      'an object with type "proxy", an object with type "staticFiles", an object with type "redirect", an object with type "respond" or an object with type "status"',
    ],
  ])("%s = %j: allowed is %s", (path, value, allowed) => {
    expect(problemsOf(broken(path, value)).map((one) => one.allowed)).toEqual([allowed]);
  });

  test.each([
    ["0.0.0.0", "http://127.9.9.9:80", true],
    ["0.0.0.0", "http://127.0.0.1", true],
    ["0.0.0.0", "http://sync.example/", true],
    ["0.0.0.0", "http://10.127.0.1:80", false],
    ["0.0.0.0", "http://127.0.0.1:8", false],
    ["0.0.0.0", "http://127.0.0.1:8080/", false],
    ["192.0.2.1", "http://192.0.2.1:80", true],
    ["192.0.2.1", "http://127.0.0.1:80", false],
    ["2001:db8:0::1", "http://[2001:db8::1]:80/", true],
    ["2001:db8::1", "http://[2001:db8::2]:80", false],
    ["::", "http://[::1]", true],
  ])("a listener on %s and an upstream at %s: a loop is %s", (address, url, loops) => {
    const config = { ...minimal(), upstreams: [{ name: "web", url }] };
    const listeners = [{ name: "http", address, port: 80, protocol: "http" }];
    const codes = problemsOf({ ...config, listeners }).map((p) => p.code);
    expect(codes.includes("config.proxy-loop")).toBe(loops);
  });

  test.each([
    [
      "http and https that redirect to each other",
      { scheme: "https", port: 443 },
      { scheme: "http", port: 80 },
      true,
    ],
    ["http to https that responds", { scheme: "https", port: 443 }, undefined, false],
    ["https to another port", { scheme: "https", port: 443 }, { scheme: "https", port: 8443 }, false],
    ["http to another host", { scheme: "http", port: 80, host: "other.example" }, undefined, false],
  ])("redirect loops: %s", (_name, onHttp, onHttps, loops) => {
    const config = {
      ...minimal(),
      listeners: [
        { name: "http", address: "0.0.0.0", port: 80, protocol: "http" },
        { name: "https", address: "0.0.0.0", port: 443, protocol: "https", tls: TLS },
      ],
      virtualServers: [
        server("a", { routes: [redirect(onHttp)] }),
        server("b", {
          listeners: ["https"],
          routes: [onHttps === undefined ? route({}) : redirect(onHttps)],
        }),
      ],
    };
    const codes = problemsOf(config).map((p) => p.code);
    expect(codes).toEqual(loops ? ["config.redirect-loop", "config.redirect-loop"] : []);
  });

  test.each([
    ["{", "config.not-json"],
    ["", "config.not-json"],
    ["[]", "config.wrong-type"],
    ["null", "config.wrong-type"],
  ])("text %j is %s and never throws", (text, code) => {
    const result = parseConfigText(text);
    expect(result.ok ? [] : result.problems.map((p) => p.code)).toContain(code);
  });

  test.each([
    ["", 1, 1],
    ["{", 1, 2],
    ['{\n  "version": 1,\n  "listeners": [,]\n}\n', 3, 17],
    ['{\n  "version": tru,\n}', 2, 17],
    ["{'version': 1}", 1, 2],
    ["s3cr3t\ns3cr3t", 1, 1],
    ["[1]\n]", 2, 1],
  ])("a syntax error in %j is on one line, with line and column, and shows nothing", (text, line, column) => {
    const result = parseConfigText(text);
    const [message] = result.ok ? [] : result.problems.map((p) => p.message);
    expect(message).toMatch(new RegExp(`^is not JSON: .+ \\(line ${line} column ${column}\\)$`));
    expect(message).not.toContain("s3cr3t");
  });

  test.each<[string, string[]]>([
    ['{"version":1,"version":1}', ["version"]],
    ['{"version":1,"vers\\u0069on":1}', ["version"]],
    [
      '{"listeners":[{},{"port":1,"name":"x","port":2,"port":3}]}',
      ["listeners[1].port", "listeners[1].port"],
    ],
    ['{"upstreams":[{"tls":{"a":[1,{"b":1}],"b":{},"a":2},"b":1},{"tls":{"a":1}}]}', ["upstreams[0].tls.a"]],
    ['{"a":"{\\"a\\":1,\\"a\\":2}","b":["a","a"],"c":{"a":"b"},"d\\\\":1,"d":"d\\\\"}', []],
    ['{"":{"":1,"":2},"__proto__":{},"constructor":1,"__proto__":{}}', [".", "__proto__"]],
    ["[[],{},[{}],1,null,true]", []],
  ])("fields that %s has twice are named", (text, paths) => {
    const result = parseConfigText(text);
    const found = result.ok ? [] : result.problems.filter(({ code }) => code === "config.repeated-field");
    expect(found.map(({ path }) => path)).toEqual(paths);
  });

  test("a repeated field is a problem beside others, and of a config that has no other", () => {
    const text = JSON.stringify(minimal());
    expect(parseConfigText(text).ok).toBe(true);
    const repeated = parseConfigText(text.replace(/\}$/, ',"workers":1,"workers":2}'));
    expect(repeated.ok ? [] : repeated.problems.map(({ code }) => code)).toEqual(["config.repeated-field"]);
    const worse = parseConfigText(text.replace(/\}$/, ',"workers":1,"workers":"x"}'));
    expect(worse.ok ? [] : worse.problems).toHaveLength(2);
  });

  test("thousands of problems are reported at once", () => {
    const upstreams = Array.from({ length: 5_000 }, (_, i) => ({ name: `u${i}` }));
    let found = 0;
    // 0.2 s; 16 s when the allowed values were made out anew for each.
    const ms = cpuMs(4_000, () => {
      const result = parseConfig({ ...minimal(), upstreams });
      found = result.ok ? 0 : result.problems.length;
    });
    expect(ms).toBeLessThan(4_000);
    expect(found).toBeGreaterThanOrEqual(5_000);
  });

  test("a syntax error names line and column", () => {
    const result = parseConfigText('{\n  "version": 1,\n  oops\n}');
    expect(result.ok ? "" : result.problems[0]!.message).toMatch(/line 3 column 3/);
    const first = parseConfigText("{,}");
    expect(first.ok ? "" : first.problems[0]!.message).toMatch(/line 1 column 2\)$/);
    // The engine quotes the text instead.
    const quoted = parseConfigText("[position 5]");
    expect(quoted.ok ? "" : quoted.problems[0]!.message).toMatch(/ 'p' \(line 1 column 2\)$/);
  });
});

describe("JSON Schema", () => {
  test("describes every field, as editors need it", () => {
    const schema = configJsonSchema() as {
      properties: Record<string, { description?: string }>;
    };
    expect(schema).toMatchObject({
      $schema: "https://json-schema.org/draft/2020-12/schema",
      title: "Portico proxy config",
      // What has a default may be left out.
      required: ["version", "listeners", "virtualServers"],
      additionalProperties: false,
    });
    expect(Object.keys(schema.properties)).toEqual(
      expect.arrayContaining(["version", "listeners", "virtualServers"]),
    );
    const undescribed = Object.entries(schema.properties).filter(
      ([, field]) => field.description === undefined,
    );
    expect(undescribed).toEqual([]);
  });

  interface Described {
    readonly description: string;
    readonly properties: Record<string, { description: string }>;
  }

  test("a description contains range and default, which editors do not show by themselves", () => {
    const { properties } = configJsonSchema() as {
      properties: Record<string, Described & { items?: Described }>;
    };
    expect(properties.trustedProxies!.description).toMatch(/\. Default \[\]\.$/);
    const { port } = properties.listeners!.items!.properties;
    expect(port!.description).toMatch(/\. 1 to 65535\.$/);
    expect(properties.workers!.description).toMatch(/ 1 to 256 processes; default "auto"\.$/);
    expect(properties.timeouts!.properties.drainMs!.description).toMatch(
      / 1 to 2147483647 milliseconds; default 36000000\.$/,
    );
  });
});

describe("problem codes", () => {
  test.each([
    ["a".repeat(118), `"${"a".repeat(118)}"`],
    ["a".repeat(119), `"${"a".repeat(119)}…`],
    [NaN, "NaN"],
    [10n, "10"],
    [null, "null"],
    [{ a: 1 }, '{"a":1}'],
  ])("what was received is shown, up to 120 characters: %p", (received, shown) => {
    expect(problem("config.bad-name", "a", "is bad", { received }).received).toBe(shown);
  });

  test("several are thrown as one error", () => {
    const error = new ProblemError([
      problem("config.bad-name", "a", "is bad", { received: "?", allowed: "a name", fix: "Fix it." }),
      problem("config.not-json", "", "is not JSON"),
    ]);
    expect(String(error)).toBe(
      [
        "ProblemError: a: is bad [config.bad-name]",
        '    received: "?"',
        "    allowed:  a name",
        "    fix:      Fix it.",
        "    see:      cdktf-portico/docs/errors.md#configbad-name",
        "is not JSON [config.not-json]",
        `    fix:      ${PROBLEM_CODES["config.not-json"]}`,
        "    see:      cdktf-portico/docs/errors.md#confignot-json",
      ].join("\n"),
    );
  });
});
