import fc from "fast-check";
import { chunk, headText, LAST_CHUNK } from "../../../testkit/messages.js";
import { type Channel, type Request } from "../../wire/case.js";
import {
  RESPONSE_FIELDS,
  BODY_PIECES,
  CONNECTION_FIELDS,
  FIELDS,
  type FieldWords,
  MEDIA,
  METHODS,
  PREFIXES,
  QUERIES,
  SEGMENTS,
  STATUSES,
  STRANGE_HOSTS,
  STRANGE_PREFIXES,
  STRANGE_SEGMENTS,
} from "../cases/words.js";
import type { Field } from "../../../testkit/messages.js";
import { HOST } from "../../wire/site.js";
import { randomText } from "../../../testkit/random.js";

/** A request as it was generated; it shrinks towards a plain GET of the web application. */
export interface GeneratedCase {
  readonly channel: Channel;
  readonly method: string;
  readonly target: string;
  readonly host: string | undefined;
  readonly fields: readonly Field[];
  readonly body: Body | undefined;
  readonly version: string;
  readonly response: GeneratedResponse;
}

interface Body {
  readonly pieces: readonly string[];
  readonly framing: "length" | "chunked";
}

/** What the upstream says, if the request gets there. */
export interface GeneratedResponse {
  readonly status: string;
  readonly fields: readonly Field[];
  readonly body: string;
  readonly framing: "length" | "chunked" | "close";
}

/** The words of the request in the table of `proof/nginx`. */
export function requestOf({ method, target, host, fields, body, version }: GeneratedCase): Request {
  return { method, target, host, fields, body: body?.pieces, framing: body?.framing, version };
}

/** The response on the wire; without its body where there is none. */
export function responseText({ method, response }: GeneratedCase): string {
  const { status, fields, body, framing } = response;
  const bodiless = method === "HEAD" || /^(?:204|304)/.test(status);
  const sent = bodiless ? "" : body;
  const lines = [`HTTP/1.1 ${status}`, ...fields.map(([name, value]) => `${name}: ${value}`)];
  if (framing === "length" && !status.startsWith("204")) lines.push(`Content-Length: ${body.length}`);
  if (framing === "chunked" && !bodiless) lines.push("Transfer-Encoding: chunked");
  const head = headText(...lines);
  if (framing !== "chunked" || bodiless) return head + sent;
  return head + (sent === "" ? "" : chunk(sent)) + LAST_CHUNK;
}

/** A choice shrinks into its first, which is the usual one; without this it would only shrink within what was chosen. */
const TO_FIRST = { withCrossShrink: true };

const pick = <T>(values: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...values);
/** One of several kinds, each as often as its weight says. */
const mixed = <T>(...kinds: readonly (readonly [weight: number, arbitrary: fc.Arbitrary<T>])[]) =>
  fc.oneof(TO_FIRST, ...kinds.map(([weight, arbitrary]) => ({ weight, arbitrary })));
const often = <T>(weight: number, [usual, ...others]: readonly [T, ...T[]]): fc.Arbitrary<T> =>
  mixed([weight, fc.constant(usual)], [1, pick(others)]);
const some = (kinds: readonly FieldWords[], maxLength: number): fc.Arbitrary<Field[]> =>
  fc.array(
    fc.oneof(
      TO_FIRST,
      ...kinds.map(([name, ...values]) => pick(values).map((value): Field => [name, value])),
    ),
    { maxLength },
  );

const CHANNEL = mixed<Channel>(
  [4, fc.constant("http")],
  [3, fc.constant("https")],
  [3, fc.constant("h2")],
  [1, fc.constant("redirect")],
);
const METHOD = mixed([8, pick(METHODS.usual)], [3, pick(METHODS.webdav)], [1, pick(METHODS.odd)]);
const PREFIX = mixed([6, pick(PREFIXES)], [2, pick(STRANGE_PREFIXES)]);
const SEGMENT = mixed([4, pick(SEGMENTS)], [3, pick(STRANGE_SEGMENTS)]);
const PATH = fc
  .tuple(PREFIX, fc.array(SEGMENT, { maxLength: 4 }), fc.boolean())
  .map(([prefix, segments, slash]) => [prefix, ...segments].join("/") + (slash ? "/" : ""));
const TARGET = fc
  .tuple(mixed([5, PATH], [1, pick(MEDIA)]), mixed([4, fc.constant("")], [2, pick(QUERIES)]))
  .map(([path, query]) => path + query);
const HOSTS = mixed<string | undefined>([8, fc.constant(HOST)], [2, pick(STRANGE_HOSTS)]);
const [MIDDLE, LARGE] = [randomText(3_000), randomText(70_000)];
const BODY = fc.option(
  fc.record<Body>({
    pieces: fc.array(pick(BODY_PIECES), { maxLength: 3 }),
    framing: often<Body["framing"]>(2, ["length", "chunked"]),
  }),
  { nil: undefined, freq: 3 },
);
const RESPONSE: fc.Arbitrary<GeneratedResponse> = fc.record({
  status: often(3, STATUSES),
  fields: some(RESPONSE_FIELDS, 3),
  body: often(2, ["answer", "", MIDDLE, LARGE, "\0\xff\r\n0\r\n\r\n"]),
  framing: often<GeneratedResponse["framing"]>(3, ["length", "chunked", "close"]),
});

/** Everything that is asked of both proxies. */
export const CASE: fc.Arbitrary<GeneratedCase> = fc
  .record({
    channel: CHANNEL,
    method: METHOD,
    target: TARGET,
    host: HOSTS,
    fields: some(FIELDS, 4),
    connectionFields: some(CONNECTION_FIELDS, 2),
    body: BODY,
    version: often(12, ["HTTP/1.1", "HTTP/1.0", "HTTP/1.2"]),
    response: RESPONSE,
  })
  .map(({ connectionFields, ...rest }) =>
    rest.channel === "h2"
      ? { ...rest, fields: once(rest.fields) }
      : { ...rest, fields: [...rest.fields, ...connectionFields] },
  );

/** The client library of HTTP/2 refuses to repeat many fields. */
function once(fields: readonly Field[]): Field[] {
  const seen = new Set<string>();
  return fields.filter(([name]) => {
    const lower = name.toLowerCase();
    return !seen.has(lower) && seen.add(lower);
  });
}
