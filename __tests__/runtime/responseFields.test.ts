import fc from "../../testkit/property.js";
import { parseConfig, type ProxyConfig } from "../../src/model/index.js";
import {
  type ResponseFields,
  compileResponseFields,
  linesOf,
} from "../../src/runtime/exchange/responseFields.js";
import { HeadReader } from "../../src/runtime/codec/http1/headReader.js";
import { type ParsedResponse, parseResponseHead } from "../../src/runtime/codec/http1/responseHead.js";

/** Whatever a config may set and remove: the head of a response is framed as it was, and has what the config says. */

/** Names that matter to someone, in any case, and names that nobody has seen. */
const name = fc
  .oneof(
    { weight: 3, arbitrary: fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,12}$/) },
    fc.constantFrom(
      ...["Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Upgrade", "Trailer", "TE"],
      ...[
        "Proxy-Connection",
        "Date",
        "Server",
        "Set-Cookie",
        "ETag",
        "X-A",
        "x-a",
        "X-B",
        "x.b",
        "a|b",
        "^",
        "$",
      ],
    ),
    fc.string({ maxLength: 12, unit: "binary" }),
    fc.constantFrom("X\r\nContent-Length", "X: 1\r\nTransfer-Encoding", ":status", "", " X", "X-A\n"),
  )
  .chain((text) => fc.constantFrom(text, text.toUpperCase(), text.toLowerCase()));

const value = fc.oneof(
  { weight: 3, arbitrary: fc.stringMatching(/^[!-~]([ -~\t]{0,20}[!-~])?$/) },
  fc.string({ maxLength: 20, unit: "binary" }),
  fc.constantFrom("1\r\n\r\nbody", "a\nContent-Length: 0", "chunked", "close", "\r", "\0", "\u010a\u010d"),
);

const rulesOf = (names: fc.Arbitrary<string>, values: fc.Arbitrary<string>) =>
  fc.record({
    set: fc.dictionary(names, values, { maxKeys: 6 }),
    remove: fc.array(names, { maxLength: 4 }),
  });

/** Most configs have to be fit for use, or nothing would be seen of what they do. */
const rules = fc.oneof(
  {
    weight: 4,
    arbitrary: rulesOf(
      fc.oneof(
        fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,4}$/),
        fc.constantFrom("X-A", "x-a", "X-B", "x.b", "xxb"),
      ),
      fc.stringMatching(/^[!-~]([ -~\t]{0,20}[!-~])?$/),
    ),
  },
  { weight: 1, arbitrary: rulesOf(name, value) },
);

function configOf(server: unknown, route: unknown, hsts: unknown): ProxyConfig | undefined {
  const parsed = parseConfig({
    version: 1,
    listeners: [
      { name: "l", address: "0.0.0.0", port: 80, protocol: "https", tls: { certificate: "/c", key: "/k" } },
    ],
    virtualServers: [
      {
        name: "s",
        serverNames: ["_"],
        listeners: ["l"],
        default: true,
        responseHeaders: server,
        hsts,
        routes: [{ name: "r", path: "/", action: { type: "respond", status: 200 }, responseHeaders: route }],
      },
    ],
  });
  return parsed.ok ? parsed.value : undefined;
}

const headOf = (lines: string): ParsedResponse => {
  const reader = new HeadReader(1 << 20, 1 << 16);
  const bytes = Buffer.from(`HTTP/1.1 200 OK\r\n${lines}`, "latin1");
  if (!reader.read(bytes, 0)) throw new Error("the head does not end");
  expect(reader.next).toBe(bytes.length);
  return parseResponseHead(reader, "GET", 2000, true);
};

const framingOf = ({ bodyLength, contentLength, keepAlive, upgrade, fields }: ParsedResponse) => ({
  bodyLength,
  contentLength,
  keepAlive,
  upgrade,
  transferEncoding: fields.transferEncoding,
});

/** A response's own fields, framing included: more than the protocol ever lets the rules see. */
const response = fc.record({
  framing: fc.constantFrom(
    "Content-Length: 5\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Connection: close\r\n",
    "",
  ),
  fields: fc.array(
    fc.tuple(
      fc.oneof(
        fc
          .stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,12}$/)
          .filter((one) => !/^(?:te|upgrade)$/i.test(one)),
        fc.constantFrom("X-A", "x-a", "X-B", "xxb", "Set-Cookie", "ETag", "a"),
      ),
      fc.oneof(fc.stringMatching(/^([!-~\x80-\xff]([ -~\t]{0,20}[!-~])?)?$/), fc.constant("X-A: 1")),
    ),
    { maxLength: 12 },
  ),
});

test("what a config sets and removes cannot change how a response is framed", () => {
  let accepted = 0;
  fc.assert(
    fc.property(
      rules,
      rules,
      fc.constantFrom(undefined, {}),
      response,
      (server, route, hsts, { framing, fields }) => {
        const config = configOf(server, route, hsts);
        if (config === undefined) return;
        accepted++;
        const [virtualServer] = config.virtualServers;
        const compiled = compileResponseFields(virtualServer!, virtualServer!.routes[0])?.https;
        const list = fields.flat();
        const lines = `${framing}${linesOf(list)}\r\n`;
        const before = headOf(lines);
        const after = headOf(compiled === undefined ? lines : compiled.inLines(lines));
        expect(framingOf(after)).toEqual(framingOf(before));
        const expected = expectedFields(config, before.fields.list);
        expect(sorted(after.fields.list)).toEqual(sorted(expected));
        // The same as a list, which HTTP/2 sends.
        expect(inList(compiled, list)).toEqual(sorted(expectedFields(config, list)));
      },
    ),
    { numRuns: 1000 },
  );
  // Most of what is generated has something to refuse.
  expect(accepted).toBeGreaterThan(100);
});

const inList = (compiled: ResponseFields | undefined, list: string[]): string[] =>
  sorted(compiled === undefined ? list : compiled.inList(list));

/** Field by field, without any care for cost. */
function expectedFields(config: ProxyConfig, list: readonly string[]): string[] {
  const [server] = config.virtualServers;
  const [route] = server!.routes;
  const wanted = new Map<string, string | undefined>();
  if (server!.hsts !== undefined) wanted.set("strict-transport-security", "max-age=31536000");
  for (const { set, remove } of [server!.responseHeaders, route!.responseHeaders]) {
    remove.forEach((one) => wanted.set(one.toLowerCase(), undefined));
    Object.entries(set).forEach(([one, text]) => wanted.set(one.toLowerCase(), text));
  }
  const kept = pairs(list).filter(([one]) => !wanted.has(one.toLowerCase()));
  const set = [...wanted].filter((entry): entry is [string, string] => entry[1] !== undefined);
  return [...kept, ...set].flat();
}

const pairs = (list: readonly string[]): [string, string][] =>
  Array.from({ length: list.length / 2 }, (_, i) => [list[2 * i]!, list[2 * i + 1]!]);

const sorted = (list: readonly string[]): string[] =>
  pairs(list)
    .map(([one, text]) => `${one.toLowerCase()}: ${text}`)
    .sort();
