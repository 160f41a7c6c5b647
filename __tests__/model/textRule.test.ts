import { isIPv6 } from "node:net";
import { loopbackPorts } from "../../src/model/host/host.js";
import { PUBLIC_NAME } from "../../src/model/net/serverName.js";
import { configSchema } from "../../src/model/config/config.js";
import { nodesAt } from "../../src/model/config/schema.js";
import {
  CIDR,
  cipherString,
  filePath,
  headerName,
  headerValue,
  ipAddress,
  line,
  name,
  requestFieldName,
  routePath,
  servedName,
  serverName,
  text,
  upstreamUrl,
} from "../../src/model/schema/fields.js";
import { IPV6_PATTERN } from "../../src/model/text/textRule.js";

/** Texts on both sides of every rule. */
const TEXTS = [
  ...[
    "",
    "_",
    "a",
    "a.b",
    "A",
    "a-",
    "-a",
    "a_b",
    "1",
    "1.2",
    "1a",
    "1-a",
    "a..b",
    ".a",
    "a.",
    "a".repeat(63),
  ],
  ...["a".repeat(64), `${"a.".repeat(126)}a`, `${"a.".repeat(127)}a`, "xn--bcher-kva.example", "a:80", "a b"],
  ...[
    "0.0.0.0",
    "255.255.255.255",
    "256.0.0.1",
    "1.2.3",
    "01.2.3.4",
    "10.0.0.0/8",
    "10.0.0.0/33",
    "10.0.0.0/08",
  ],
  ...[
    "::",
    "::1",
    "1::",
    "2001:db8::1",
    "2001:DB8::1",
    "1:2:3:4:5:6:7:8",
    "1:2:3:4:5:6:7::",
    "::2:3:4:5:6:7:8",
  ],
  ...[
    "1::3:4:5:6:7:8",
    "1:2:3:4:5:6:7:8:9",
    "1::2::3",
    ":::",
    "::ffff:192.0.2.1",
    "1:2:3:4:5:6:192.0.2.1",
    "12345::",
  ],
  ...[
    "fe80::1%eth0",
    "fe80::1%",
    "::/0",
    "::/128",
    "::/129",
    "[::1]",
    "1:2:3:4:5:6:7",
    "1:2::4:5::",
    "1:2:3::5:6:7:8",
  ],
  ...[
    "http://a",
    "http://a/",
    "http://a:1",
    "http://a:65535",
    "http://a:65536",
    "http://a:0",
    "http://_",
    "http://a:",
  ],
  ...[
    "http://10.0.0.7:80",
    "http://10.0.0:80",
    "http://[::1]:80",
    "http://[::g]",
    "https://a",
    "http://a/b",
    "http://A",
  ],
  ...[
    "/",
    "/a",
    "/a/",
    "/a//b",
    "/a/./b",
    "/a/..",
    "/..",
    "/.a",
    "/a b",
    "/a%",
    "/a?",
    "/a#",
    "/\u00e9",
    "a/b",
    "/a\n",
  ],
];

const RULES = {
  name: name(""),
  ipAddress: ipAddress(""),
  cidr: text("config.bad-address", "", CIDR),
  serverName: serverName(""),
  servedName: servedName(""),
  upstreamUrl: upstreamUrl(""),
  routePath: routePath(""),
};
/** IPv6 that is not canonical (RFC 5952). */
const NOT_CANONICAL = [
  ...["1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "1:2:3::5:6:7:8", "1::3:4:5:6:7:8", "::ffff:192.0.2.1"],
  "1:2:3:4:5:6:192.0.2.1",
];
/** What the patterns let pass and the rule refuses. */
const ONLY_THE_RULE_REFUSES: Partial<Record<keyof typeof RULES, readonly string[]>> = {
  serverName: NOT_CANONICAL,
  servedName: NOT_CANONICAL,
};

const [LONGEST_LABEL, LONGEST_NAME] = ["a".repeat(63), `${"a.".repeat(126)}a`];

const FIELDS = {
  ...RULES,
  publicName: text("config.bad-server-name", "", PUBLIC_NAME),
  filePath: filePath(""),
  headerName,
  headerValue,
  requestFieldName: requestFieldName("", "", ["Forwarded"]),
  cipherString: cipherString(""),
  line: line(""),
};

/** What each rule takes, and what it refuses that comes close. */
const TAKEN: Readonly<Record<keyof typeof FIELDS, readonly [taken: string[], refused: string[]]>> = {
  publicName: [
    ["a", "_a", "a_", "__", "192.0.2.1", "2001:db8::1"],
    ["", "_", "A", "a.", "a:80", "[::1]", `${"a".repeat(64)}.b`],
  ],
  filePath: [
    ["/", "/a", "/a/", "/.a", "/a.", "/..a", "/...", "/a b", "/%/\u00e4", "/~"],
    [
      "",
      "a",
      " /a",
      "a/b",
      "./a",
      "/a\n",
      "/a\0b",
      "/a\x1f",
      "/a\x7f",
      "//",
      "/a//b",
      "/.",
      "/./a",
      "/..",
      "/a/..",
    ],
  ],
  headerName: [
    ["X-A", "a", "!#$%&'*+.^`|~0", "Hosts", "X-Host", "Tea", "Upgrade-Insecure-Requests", "X-Expect"],
    [
      ...[
        "",
        " X",
        "X ",
        "X:",
        "X\n",
        "X A",
        "X(",
        "X_A",
        "\u00e4",
        "Host",
        "HOST",
        "connection",
        "Keep-Alive",
      ],
      ...["Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "Content-Length", "Expect"],
      "HTTP2-Settings",
    ],
  ],
  requestFieldName: [
    ["Remote-User", "x-a", "0", "Proxy-Status", "Hosts", "X-Proxy", "Forwarded-For", "X-Forwarded"],
    [
      ...["", "X_A", "X.A", " X", "X ", "X\n", "\u00e4", "Host", "hOST", "Proxy", "TE", "Upgrade", "Expect"],
      ...["Proxy-Authorization", "Content-Length", "HTTP2-Settings", "forwarded", "Forwarded"],
    ],
  ],
  headerValue: [
    ["", "a", "a b", "a\tb", "~!"],
    [" ", " a", "a ", "\ta", "a\t", "a\n", "a\r\nb", "a\0b", "a\x7fb", "\u00e4"],
  ],
  cipherString: [
    ["HIGH", "ECDHE+AESGCM:!MD5:@SECLEVEL=1", "TLS_AES_128_GCM_SHA256", "A-B"],
    ["", " HIGH", "HIGH ", "HIGH\n", "A B", "A,B", "A;B", "\u00e4"],
  ],
  line: [
    ["", " a b ", "~"],
    ["a\n", "\na", "a\tb", "a\x7f", "\u00e4", "a\r\nb"],
  ],
  name: [
    ["a", "A.b-c_9", "9", "a-", "a".repeat(64)],
    ["", "-a", ".a", "_a", " a", "a ", "a\n", "a b", "a/b", "a\u00e4", "a".repeat(65)],
  ],
  ipAddress: [
    ["0.0.0.0", "255.255.255.255", "::", "1::", "2001:DB8::1", "::ffff:192.0.2.1", "fe80::1%eth0"],
    [
      "",
      "1.2.3",
      "256.0.0.1",
      "01.2.3.4",
      "1.2.3.4.5",
      " ::1",
      "::1\n",
      "[::1]",
      "1::2::3",
      "fe80::1%",
      "::g",
    ],
  ],
  cidr: [
    ["10.0.0.0", "10.0.0.0/8", "10.0.0.0/32", "10.0.0.0/008", "::1", "::/0", "::/128", "::/032"],
    ["10.0.0.0/33", "10.0.0.0/", "10.0.0.0/0008", "10.0.0.0/+8", "10.0.0.0/8x", "10.0.0.0/x8", "10.0.0.0/ 8"],
  ],
  serverName: [
    [
      ...["_", "a", "a1", "1a", "1-a", "1-1", "a-1", "a_", "_a", "a_1.example", "a1.b2", "a.1", "1.a"],
      ...["xn--bcher-kva.example", "192.0.2.1", "::", "2001:db8::1", LONGEST_LABEL, LONGEST_NAME],
    ],
    [
      ...[
        "",
        "A",
        "a-",
        "-a",
        "a.-b",
        "a-.b",
        "1",
        "1.2",
        "1.2.3.4.5",
        ".a",
        "a.",
        "a..b",
        " a",
        "a ",
        "a\n",
      ],
      ...["a:80", "[::1]", "2001:DB8::1", "1:0:0:0:0:0:0:1", `${LONGEST_LABEL}a`, `${LONGEST_NAME}a`, "a*"],
    ],
  ],
  servedName: [
    ["_", "a", "192.0.2.1", "2001:db8::1", "*.a", "*.a.example", "*.1.a", `*.${"a.".repeat(125)}a`],
    [
      "",
      "*",
      "*.",
      "*a.example",
      "a.*.example",
      "*.*.example",
      "*.A",
      "*.192.0.2.1",
      "*.::1",
      "*.1",
      `*.${LONGEST_NAME}`,
    ],
  ],
  upstreamUrl: [
    [
      ...[
        "http://a",
        "http://a/",
        "http://a:1",
        "http://a1:65535/",
        "http://192.0.2.1:80",
        "http://[::1]:80",
      ],
      ...["http://_a", `https://${LONGEST_NAME}:65535/`, "https://a", "https://[::1]:1/"],
      ...["unix:/a", "unix:/run/app@1/web-2.sock", "unix:/...", "unix:/.a", `unix:/${"a".repeat(106)}`],
    ],
    [
      ...["", "a", "HTTP://a", "xhttp://a", " http://a", "http://a:0", "http://a:65536", "http://a:"],
      ...["http://a:080", "http://a//", "http://a/b", "http://a?", "http://a#", "http://u@a", "http://A"],
      ...[
        "http://_",
        "http://_/",
        "http://_:80",
        "http://::1",
        "http://10.0.0:80",
        `http://${LONGEST_LABEL}a`,
      ],
      ...[
        `https://${LONGEST_NAME}aa:65535/`,
        "http://a\n",
        "https://_",
        `https://${LONGEST_LABEL}a`,
        "https://a/b",
      ],
      ...[
        "unix:",
        "unix:/",
        "unix:a",
        "unix://a",
        "unix:/a/",
        "unix:/a//b",
        "unix:/./a",
        "unix:/a/..",
        "unix:/a b",
      ],
      ...["unix:/a\n", "unix:/a:/b", `unix:/${"a".repeat(107)}`, "http+unix:/a", "http://unix:/a"],
    ],
  ],
  routePath: [
    ["/", "/a", "/a/", "/.a", "/a.", "/..a", "/...", "/a;b", "/~"],
    [
      "",
      "a",
      " /a",
      "/a b",
      "/a\n",
      "/a//b",
      "/.",
      "/..",
      "/./a",
      "/../a",
      "/a/.",
      "/a/..",
      "/a%41",
      "/a?",
      "/a#",
    ],
  ],
};

test.each(Object.entries(TAKEN))("%s takes what it says, and nothing that comes close", (kind, texts) => {
  const field = FIELDS[kind as keyof typeof FIELDS];
  expect(texts.map((all) => all.map((value) => [value, field.safeParse(value).success]))).toEqual(
    texts.map((all, i) => all.map((value) => [value, i === 0])),
  );
});

test.each(Object.keys(RULES) as (keyof typeof RULES)[])("patterns of %s say what the rule says", (kind) => {
  const field = RULES[kind];
  const [{ pattern, not, maxLength = Infinity }] = nodesAt(field, []) as [
    { pattern: string; not?: { pattern: string }; maxLength?: number },
  ];
  const passes = (value: string): boolean =>
    new RegExp(pattern).test(value) &&
    !(not && new RegExp(not.pattern).test(value)) &&
    value.length <= maxLength;
  const differing = TEXTS.filter((value) => passes(value) !== field.safeParse(value).success);
  expect(differing.sort()).toEqual([...(ONLY_THE_RULE_REFUSES[kind] ?? [])].sort());
  expect(TEXTS.some(passes)).toBe(true);
});

test("every text in the config has a rule, except free text", () => {
  const found: string[] = [];
  const walk = (nodes: ReturnType<typeof nodesAt>, path: string): void => {
    for (const node of nodes) {
      const inner = node.anyOf ?? node.oneOf;
      if (inner !== undefined) walk(inner, path);
      if (node.items !== undefined) walk([node.items], `${path}[]`);
      for (const [key, child] of Object.entries(node.properties ?? {})) walk([child], `${path}.${key}`);
      const free = node.type === "string" && node.enum === undefined && node.const === undefined;
      if (free && node.pattern === undefined) found.push(path);
    }
  };
  walk(nodesAt(configSchema, []), "");
  expect(found).toEqual([
    ".$schema",
    ".maintenance.page",
    ".virtualServers[].errorPages[].html",
    ".virtualServers[].pauseResponse.body",
    ".virtualServers[].routes[].action.body",
  ]);
});

test.each([
  ["http://localhost", [80, 3306]],
  ["http://localhost:81/", [81, 3306]],
  ["http://127.0.0.1:81", [81, 3306]],
  ["http://127.1.2.3:81", [81, 3306]],
  ["http://[::1]:81", [81, 3306]],
  ["http://xlocalhost:81", [3306]],
  ["http://localhost.example:81", [3306]],
  ["http://127.0.0.1.example:81", [3306]],
  ["http://10.127.0.1:81", [3306]],
  ["http://[2001:db8::1]:81", [3306]],
])("ports that only the host may reach, of an upstream at %s: %j", (url, ports) => {
  expect(loopbackPorts([url])).toEqual(ports);
});

test("the pattern of IPv6 addresses takes every shape that Node takes, and no other", () => {
  const pattern = new RegExp(`^${IPV6_PATTERN}$`);
  const counts = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
  const groups = (count: number): string[] => new Array<string>(count).fill("a");
  const shapes = counts.flatMap((left) =>
    counts.flatMap((right) =>
      ["", ":", "::", ":::"].flatMap((gap) =>
        [[], ["192.0.2.1"]].map(
          (tail) => groups(left).join(":") + gap + [...groups(right), ...tail].join(":"),
        ),
      ),
    ),
  );
  expect(shapes.filter((shape) => pattern.test(shape) !== isIPv6(shape))).toEqual([]);
});
