import fs from "node:fs";
import path from "node:path";
import * as ts from "typescript";
import {
  acceptsHtml,
  ForwardingRules,
  parseConfig,
  parseHost,
  serverConfigsOf,
} from "../../src/model/index.js";
import { evaluateConditions, parseHttpDate, rangeMaySend } from "../../src/runtime/actions/conditional.js";
import { parseRange } from "../../src/runtime/actions/ranges.js";
import { address } from "../../src/runtime/codec/request.js";
import { cpuMs, pumped } from "../../testkit/growth.js";
import { FakeExchange } from "../../testkit/fakeExchange.js";
import { proxiedRoutes } from "../../testkit/harness.js";

/**
 * What a peer sends is read in a time that grows with its length, not with the square of it. Two tests hold this: one
 * looks at every regular expression of the model and the runtime, one runs what reads peers' bytes on hostile ones.
 */

const ROOT = path.join(__dirname, "../..");

/** What takes more than this for 100,000 bytes is not linear: that takes less than 1 ms, its square many seconds. */
const CPU_MS_MAX = 500;

interface Reviewed {
  /** Why it takes linear time, or whose bytes it sees if nobody hostile has a say in them. */
  readonly because: string;
  /** Where peers have a say: what comes nearest to hurting it. */
  readonly worst?: readonly [begin: string, middle: string, end: string];
}

/**
 * Every expression that {@link isLinearBySight} cannot decide. A new one: first try to do without a second `*` or `+`;
 * where it stays, say here why it is linear, and give the input that would show that it is not.
 */
const REVIEWED: Readonly<Record<string, Reviewed>> = {
  "src/model/access/readings.ts /(\\/\\.\\.?) +(?=\\/|$)|([^./\\\\ ])[. ]+(?=\\/|$)/g": {
    because: "it begins with a character that a run of spaces and dots does not have, so once in each run",
    worst: ["/a", ". ", "x"],
  },
  "src/model/access/readings.ts /^(?:\\/\\.?[^./\\\\;% ]+(?:[. ]+[^./\\\\;% ]+)*)*\\/?$/": {
    because: "slashes, runs of dots and spaces, and other characters exclude each other",
    worst: ["", "/a. a", ";"],
  },
  "src/model/config/crossChecks.ts /\\$\\{[A-Z][A-Z0-9_]*(?::?[-?][^$}]*)?\\}/": {
    because: "it begins at a `$`, which none of its other parts has",
    worst: ["", "${A:-a", "\n"],
  },
  "src/model/config/crossChecks.ts /\\{\\$[A-Z][A-Z0-9_]*\\}|\\{[<>][A-Za-z][A-Za-z0-9-]*\\}/": {
    because: "it begins at a `{`, which none of its other parts has",
    worst: ["", "{$A", "\n"],
  },
  "src/model/config/crossChecks.ts /\\{\\{-? ?\\.[A-Za-z][^{}]*\\}\\}/": {
    because: "it begins at two `{`, which none of its other parts has",
    worst: ["", "{{.a", "\n"],
  },
  "src/runtime/codec/connectionLogin.ts /(?:^|,)\\s*(?:ntlm|negotiate|nego2|kerberos|credssp)(?![\\w-])/i": {
    because: "it begins at a comma or the start, and blanks behind one are tried once",
    worst: [",", " ", "x"],
  },
  "src/runtime/logs/loggedClient.ts /(\\bclient: )([0-9A-Fa-f:.]+(?:%[\\w.-]+)?)(?=[,\\s]|$)/g": {
    because: "it begins at a word that none of its other parts has, and its zone begins at the only `%`",
    worst: ["client: ", "a", "\u0000"],
  },
  "src/model/actions/forwarding.ts /^(https?):\\/\\/([^/?#]*)(.*)/i": {
    because:
      "the first part takes all up to a delimiter, the second all that is left: nothing is tried twice",
    worst: ["http://", "a", "\n"],
  },
  "src/model/config/certificateChecks.ts /(?<=^\\/etc\\/letsencrypt\\/live\\/[^/]+)\\/cert\\.pem$/": {
    because: "a path of the administrator",
  },
  "src/model/config/certificateChecks.ts /\\/(?:[^/]*[.-])?(?:privkey|private)[^/]*$|\\.key$/i": {
    because: "a path of the administrator",
  },
  "src/model/config/certificateChecks.ts /\\/[^/]*(?:fullchain|cert|chain)[^/]*$|\\.(?:crt|cer)$/i": {
    because: "a path of the administrator",
  },
  "src/model/config/forwardAuth.ts /^(?:content-.*|expect|if-.*|(?:accept-)?ranges?|accept-encoding|x-http-method.*|x-method-override)$/":
    {
      because: "each alternative begins with other letters, and takes the rest at once",
      worst: ["content-", "a", "\n"],
    },
  "src/model/config/crossChecks.ts /%\\[[a-z][^\\]]*\\]/": {
    because: "a text of the administrator, at most 64 KiB",
  },
  "src/model/config/crossChecks.ts /%\\{[A-Z][A-Z_:]*[A-Z]\\}|%\\{[A-Za-z-]+\\}[es](?![A-Za-z])/": {
    because: "a text of the administrator, at most 64 KiB",
  },
  "src/model/config/crossChecks.ts /\\{(?:host|hostport|scheme|uri|remote|remote_host|remote_port|client_ip|upstream_hostport|(?:http|header|env|vars|query|re)\\.[A-Za-z0-9_.-]+)\\}/":
    {
      because: "a text of the administrator, at most 64 KiB",
    },
  'src/model/config/parse.ts /"(?:[^"\\\\]|\\\\.)*"|[{}[\\],]/g': {
    because: "the text is JSON, so that every quote that opens a string has one that closes the string",
  },
  "src/model/net/errorPage.ts /^(?:(?:\\.{0,2}|~)\\/[^\\s<>]*|[^\\s<>{}]+\\.html?)$/": {
    because:
      "a text of the administrator; each try gives back one character at a time from the only repetition",
    worst: ["", "a", " "],
  },
  "src/model/net/errorPage.ts /\\{\\{([^{}]*)\\}\\}/": {
    because:
      "a page of the administrator, cut to a length; a try ends at the brace where the next one begins",
    worst: ["", "{{a", "}"],
  },
  "src/runtime/acme/dnsApi.ts /\\{(\\w+)\\}/g": { because: "it reads descriptions in this package" },
  'src/runtime/acme/dnsApis.ts /"code":\\s*(?:6003|6111|9109|1000[01])\\b/': {
    because: "it begins with a text without white space",
    worst: ["", '"code": ', "x"],
  },
  "src/model/resolution.ts /^(https?):\\/\\/([^/?#]+)(.*)/is": {
    because: "a URL of a test, or of a command line",
  },
  'src/runtime/load/dnsFiles.ts /^\\s*key\\s+"?([A-Za-z0-9._-]+)"?\\s*\\{([^{}]*)\\}\\s*;\\s*$/': {
    because: "a key file of the administrator, cut to a length; each part ends where the next one begins",
    worst: ["key a {", " ", "{"],
  },
  'src/runtime/load/dnsFiles.ts /(?:^|[;\\s])algorithm\\s+"?([a-z0-9-]+)"?\\s*;/': {
    because: "the same file: the word stands between its tries",
    worst: ["algorithm ", "a", "!"],
  },
  'src/runtime/load/dnsFiles.ts /(?:^|[;\\s])secret\\s+"([A-Za-z0-9+/]+={0,2})"\\s*;/': {
    because: "the same file, the same way",
    worst: ['secret "', "a", "!"],
  },
  "src/model/config/parse.ts / at position (\\d+)$/": { because: "text of a JSON error" },
  "src/model/net/serverName.ts /^[a-z0-9_](?:[a-z0-9_-]|\\.(?!\\.|$))*$/": {
    because: "the alternatives begin with different chars, so there is one way to read a text",
    worst: ["a", "b.", "!"],
  },
  "src/runtime/actions/ranges.ts /^(\\d*)[ \\t]*-[ \\t]*(\\d*)$/": {
    because: "anchored, and neighbours share no char",
    worst: ["1", " ", "x"],
  },
  "src/runtime/load/certificateExpiry.ts /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g": {
    because: "a file of the config",
  },
  "src/runtime/tls/clientAuthority.ts /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g": {
    because: "a file of the config",
  },
  "src/runtime/tls/revocations.ts /-----BEGIN X509 CRL-----[^-]+-----END X509 CRL-----/g": {
    because: "a file of the config",
  },
  "src/runtime/tls/revocations.ts /-----[^-]+-----/g": { because: "a file of the config" },
  'src/runtime/tls/clientCertificates.ts /([A-Za-z][A-Za-z ]*):("(?:[^"\\\\]|\\\\.)*"|[^",]*)(?:, |$)/y': {
    because: "sticky, and a colon, a quote or a comma ends each part, which does not contain it",
    worst: ["", "a:", '"'],
  },
  "src/runtime/supervisor/report/cgroup.ts /^oom_kill (\\d+)$/m": { because: "a file of the kernel" },
  "src/runtime/supervisor/listeners/ownServer.ts /^([A-Z]+) (\\S+) HTTP\\/1\\.[01]\\r\\n/": {
    because: "each part ends at a blank, which it cannot contain",
    worst: ["A ", "a", ""],
  },
  "src/runtime/supervisor/startNotes.ts /^Max open files\\s+\\S+\\s+(\\d+)/m": {
    because: "a file of the kernel",
  },
  "src/runtime/load/dhParameters.ts /-----BEGIN (X9\\.42 )?DH PARAMETERS-----([A-Za-z0-9+/=\\s]+)-----END \\1DH PARAMETERS-----/":
    { because: "a file of the config" },
  "src/model/net/target.ts /^https?:\\/\\/([^/?#]+)(.*)/is": {
    because:
      "the first part takes all up to a delimiter, the second all that is left: nothing is tried twice",
    worst: ["http://", "a", ""],
  },
  "src/runtime/load/certificate.ts /-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----/": {
    because: "a file of the config",
  },
  "src/runtime/load/authorityFiles.ts /^[A-Za-z0-9_-]+=*\\s*$/": { because: "a file of the config" },
  "src/runtime/logIns/logInAction.ts /^location:[ \\t]*([^\\r\\n]*)/im": {
    because: "nothing follows what it takes, so it never goes back",
    worst: ["location:", " ", "\n"],
  },
  'src/runtime/logIns/tried.ts /"(?:[^"\\\\]|\\\\.)*"(\\s*:)?/g': {
    because: "the text is JSON, so that each string ends; spaces come once after each",
    worst: ['"a"', " ", "x"],
  },
  "src/runtime/logIns/tried.ts /^([^:]*):([\\s\\S]*)$/": {
    because: "the first part ends at the first colon",
    worst: ["", "a", ""],
  },
  "src/runtime/logIns/tried.ts /^.*?basic\\s*/i": {
    because: "it begins at the start, and nothing follows the spaces",
    worst: ["", "basi", ""],
  },
  "src/runtime/supervisor/control/certificateList.ts /^(?:DNS|IP Address):(.*)$/": {
    because: "text of a certificate that is served",
  },
  "src/runtime/supervisor/control/certificateList.ts /^CN=(.*)$/m": {
    because: "text of a certificate that is served",
  },
  "src/runtime/supervisor/control/certificateList.ts /^O=(.*)$/m": {
    because: "text of a certificate that is served",
  },
  "src/runtime/acme/acmeClient.ts /<([^<>]*)>([^<]*)/g": {
    because: "a link ends where the next one may begin",
    worst: ["", "<", ""],
  },
  "src/runtime/acme/authority.ts /^[\\w-]+=*$/": { because: "a file of the config" },
  "src/runtime/acme/certificateFile.ts /-----BEGIN PRIVATE KEY-----[^-]+-----END PRIVATE KEY-----\\n/": {
    because: "a file of our own",
  },
  "src/runtime/tls/der.ts /[-:T]|\\.\\d+/g": { because: "a date of our own" },
  "src/model/net/tlsPolicy.ts /RSA|DSS|PSK|NULL|^(?:EDH|k?DHE|ADH|AECDH|(?:AES|ARIA|CAMELLIA)\\d+-)/": {
    because: "names of ciphers of the config",
  },
};

/**
 * Whether an expression without doubt takes linear time: nothing in it repeats without bound, or one set of chars does,
 * and then either the expression is anchored at the beginning or nothing follows on which it could fail.
 */
function isLinearBySight(literal: string): boolean {
  const end = literal.lastIndexOf("/");
  const flags = literal.slice(end + 1);
  const shape = literal
    .slice(1, end)
    .replace(/\\[pP]\{[^}]*\}|\\u[0-9a-f]{4}|\\x[0-9a-f]{2}|\\./gi, "x")
    .replace(/\[[^\]]*\]/g, "x");
  const repeats = [...shape.matchAll(/[*+]|\{\d+,\}/g)];
  const [first] = repeats;
  if (first === undefined) return true;
  const after = shape.slice(first.index + first[0].length);
  const isGroup = shape[first.index - 1] === ")";
  if (repeats.length > 1 || isGroup || shape.includes("|")) return false;
  return (shape.startsWith("^") && !flags.includes("m")) || after === "";
}

describe("regular expressions", () => {
  const files = ["src/model", "src/runtime"].flatMap((folder) =>
    fs
      .readdirSync(path.join(ROOT, folder), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts"))
      .map((name) => `${folder}/${name}`),
  );
  const literals: string[] = [];
  const built: string[] = [];
  for (const file of files) {
    const source = ts.createSourceFile(
      file,
      fs.readFileSync(path.join(ROOT, file), "utf8"),
      ts.ScriptTarget.Latest,
    );
    const visit = (node: ts.Node): void => {
      if (ts.isRegularExpressionLiteral(node)) literals.push(`${file} ${node.text}`);
      if (ts.isNewExpression(node) && node.expression.getText(source) === "RegExp") built.push(file);
      ts.forEachChild(node, visit);
    };
    visit(source);
  }
  const literalOf = (entry: string): string => entry.slice(entry.indexOf(" ") + 1);

  test.each([
    ["/a*$/", false],
    ["/^[ \\t]+|[ \\t]+$/g", false],
    ["/^(\\d*)[ ]*-$/", false],
    ["/^(?:a+)+$/", false],
    ["/^a{3,}b/m", false],
    ["/^[*+]{1,9}$/", true],
    ["/^a\\+*$/", true],
    ["/[\\]+]+/g", true],
  ])("%s is linear by sight: %s", (literal, linear) => expect(isLinearBySight(literal)).toBe(linear));

  test("each is obviously linear, or was reviewed", () => {
    expect(literals.length).toBeGreaterThan(40);
    const doubtful = literals.filter((entry) => !isLinearBySight(literalOf(entry)));
    expect([...new Set(doubtful)].sort()).toEqual(Object.keys(REVIEWED).sort());
  });

  test("those built from text are listed: rules for the config, dates, fields of responses and of /proc", () => {
    expect([...new Set(built)].sort()).toEqual([
      // A field name at the start of a line, and the rest of that line.
      "src/model/actions/forwarding.ts",
      // The spellings of other proxies, between bars.
      "src/model/config/crossChecks.ts",
      // The rule of a deployment for the commands of its daemons: both are of the one who may deploy.
      "src/model/host/rows.ts",
      // The rules of a deployment for values that only Terraform knew.
      "src/model/lateValues.ts",
      "src/model/schema/fields.ts",
      "src/model/text/textRule.ts",
      "src/runtime/actions/conditional.ts",
      // One class of characters, repeated, between the ends of the text.
      "src/runtime/codec/http2/hpackTables.ts",
      "src/runtime/exchange/responseFields.ts",
      "src/runtime/load/credentialSet.ts",
    ]);
  });

  test.each(Object.entries(REVIEWED).filter(([, { worst }]) => worst !== undefined))(
    "%s on its worst input",
    (entry, { worst }) => {
      const literal = literalOf(entry);
      const end = literal.lastIndexOf("/");
      const expression = new RegExp(literal.slice(1, end), literal.slice(end + 1).replace("g", ""));
      const text = pumped(...worst!);
      expect(cpuMs(CPU_MS_MAX, () => expression.exec(text))).toBeLessThan(CPU_MS_MAX);
    },
  );
});

const FILE = { etag: '"65937d25-2d"', modifiedSecond: 1_704_164_645 };

function rules(route: number): ForwardingRules {
  const config = parseConfig({
    version: 1,
    listeners: [{ name: "http", address: "127.0.0.1", port: 80, protocol: "http" }],
    upstreams: [{ name: "web", url: "http://127.0.0.1:8000" }],
    virtualServers: [
      { name: "a", serverNames: ["_"], default: true, listeners: ["http"], routes: proxiedRoutes() },
    ],
  });
  if (!config.ok) throw new Error("not a config");
  const { virtualServers, upstreams } = config.value;
  return new ForwardingRules(virtualServers[0]!.routes[route]! as never, serverConfigsOf(upstreams[0]!)[0]!);
}

/** Everything that reads what a peer wrote, given one value. */
const READERS: Readonly<Record<string, (value: string) => unknown>> = {
  Range: (value) => [parseRange(value, 1000), parseRange(`bytes=${value}`, 1000)],
  "If-None-Match": (ifNoneMatch) => evaluateConditions({ ifNoneMatch }, FILE),
  "If-Match": (ifMatch) => evaluateConditions({ ifMatch }, FILE),
  "If-Range": (value) => rangeMaySend(value, FILE),
  Accept: (value) => [acceptsHtml(["Accept", value]), acceptsHtml(["Accept", `text/html;${value}`])],
  date: (value) => parseHttpDate(value),
  Host: (value) => [parseHost(value), parseHost(`[${value}`)],
  target: (value) => [address("a", value), address("a", `/${value}`)],
  "request fields": (value) => {
    const headers = ["Connection", value, "Destination", value, "X-Forwarded-For", value, "Cookie", value];
    const from = { host: "a", serverName: "a", scheme: "http", clientAddress: "::1", trusted: true } as const;
    for (const destination of [value, `http://a/${value}`, `http://${value}`, `/synchttp/${value}`]) {
      headers[3] = destination;
      const request = { method: "MOVE", target: `/synchttp/${value}`, path: `/synchttp/${value}`, headers };
      const forwarded = { ...request, ...from };
      rules(2).refusal(forwarded);
      rules(2).requestHead(forwarded, "");
    }
  },
  "response fields": (value) => {
    const exchange = {
      ...new FakeExchange().request,
      scheme: "http",
      clientAddress: "",
      trusted: false,
    } as const;
    for (const text of [value, `http://127.0.0.1:8000${value}`, `${value}; url=http://127.0.0.1:8000/`]) {
      const fields = ["Location", text, "Refresh", text, "Connection", text, "Content-Type", text];
      rules(2).responseHeaders(fields, { ...exchange });
    }
  },
};

const HOSTILE: readonly (readonly [string, string, string])[] = [
  ["0", " ", "x"],
  ["0", "\t ", "-x"],
  ["0-1,", " ,", "x"],
  ["", "1-1,", "x"],
  ["-", "9", "x"],
  ["", "9", "-x"],
  ["", '"', "x"],
  ["", 'W/"', "x"],
  ["", '"a", ', "x"],
  ["", "W/", '"'],
  ["", ":", "x"],
  ["", "::1:", "]"],
  ["", "1.", "!"],
  ["", "a.b-", "!"],
  ["", "%2e/", "%"],
  ["", "../", "x"],
  ["", "a/../", "x"],
  ["", "//", "#"],
  ["", "url=", "x"],
  ["", "http://", "x"],
  ["", "http://127.0.0.1:8000", "x"],
  ["", "x,", "x"],
  ["Mon, ", "0", "GMT"],
  ["", "Jan ", "GMT"],
];

describe.each(Object.entries(READERS))("%s takes linear time", (_, read) => {
  test.each(HOSTILE)("%j, many times %j, %j", (begin, middle, end) => {
    const value = pumped(begin, middle, end);
    expect(cpuMs(CPU_MS_MAX, () => read(value))).toBeLessThan(CPU_MS_MAX);
  });
});
