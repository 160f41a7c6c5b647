import { type Field, fieldValue } from "../../testkit/messages.js";
import { settled } from "../../testkit/waiting.js";
import { chunk, headText, LAST_CHUNK } from "../../testkit/messages.js";
import { type Channel, line, type Request, type Step, type WireCase } from "./case.js";
import { HOST, type Ports } from "./site.js";
import type { Performer } from "./stage.js";
import { type ClientResult, talkHttp1, talkHttp2 } from "./talk.js";
import { greeting, type RecordedRequest, type RecordingUpstream } from "./upstream.js";

/** What came of a case: what its client got, and what reached upstreams. */
export interface Performed {
  readonly result: ClientResult;
  readonly requests: readonly RecordedRequest[];
}

/** Plays a case through one proxy. */
export async function perform(row: WireCase, channel: Channel, subject: Performer): Promise<Performed> {
  const { ports, upstream } = subject;
  const tag = JSON.stringify(row.send).includes("{etag}") ? await entityTag(subject, channel) : "";
  const fill = filler(ports, tag);
  await prepare(upstream, row.response, fill);
  const result = await talk(row, channel, subject, fill).catch(async (error: unknown) => {
    await upstream.released();
    throw error;
  });
  // What was begun for a refused request, or for a client that has left, must not be taken for a part of the next case.
  if (row.wholeRequestsOnly === true || result.outcome.startLine === "") await settled(() => upstream.bytes);
  const all = await upstream.released();
  if (row.response === "refused") await upstream.open();
  const whole = row.wholeRequestsOnly === true ? all.filter((request) => request.complete) : all;
  const requests = whole.map((request) => ({
    ...request,
    fields: request.fields.map((field) => unfilled(field, tag)),
  }));
  return { result, requests };
}

type Fill = (text: string) => string;

function talk(row: WireCase, channel: Channel, subject: Performer, fill: Fill): Promise<ClientResult> {
  const { send, patienceMs } = row;
  const { ports, upstream } = subject;
  if (channel === "h2") {
    if (isSteps(send)) throw new Error("steps are bytes of HTTP/1.1");
    return talkHttp2({ ...http2Request(send, ports, fill), patienceMs });
  }
  const steps = isSteps(send) ? send : [http1Text(send)];
  return talkHttp1({
    port: channel === "https" || channel === "clear" ? ports.https : ports.http,
    tls: channel === "https",
    steps: steps.map((step) => (typeof step === "string" ? fill(step) : step)),
    upstreamBytes: () => upstream.bytes,
    patienceMs,
  });
}

function http1Text(request: Request): string {
  const { method = "GET", target, fields = [], body, framing = "length", version = "HTTP/1.1" } = request;
  const host = hostOf(request);
  const lines = [
    `${method} ${target} ${version}`,
    ...(host === undefined ? [] : [`Host: ${host}`]),
    ...fields.map(([name, value]) => `${name}: ${value}`),
  ];
  if (body !== undefined && framing === "length") lines.push(`Content-Length: ${body.join("").length}`);
  if (body !== undefined && framing === "chunked") lines.push("Transfer-Encoding: chunked");
  const pieces = body ?? [];
  const payload = framing === "chunked" ? [...pieces.map(chunk), LAST_CHUNK] : pieces;
  return headText(...lines) + payload.join("");
}

function http2Request(request: Request, ports: Ports, fill: Fill) {
  const { method = "GET", target, fields = [], body, framing = "length" } = request;
  const length: Field[] =
    body !== undefined && framing === "length" ? [["content-length", String(body.join("").length)]] : [];
  return {
    port: ports.https,
    method,
    target: fill(target),
    authority: fill(hostOf(request) ?? ""),
    fields: [...fields.map(([name, value]): Field => [name, fill(value)]), ...length],
    body: body?.map(fill),
  };
}

const hostOf = (request: Request): string | undefined => ("host" in request ? request.host : HOST);

export function isSteps(send: WireCase["send"]): send is readonly Step[] {
  return Array.isArray(send);
}

function filler(ports: Ports, etag: string): Fill {
  return (text) =>
    text
      .replace(/\{(http|https|web|files|dav)\}/g, (_, name: keyof Ports) => String(ports[name]))
      .replaceAll("{etag}", etag);
}

/** A field that went upstream, each proxy's own entity tag by its name again. */
const unfilled = ([name, value]: Field, tag: string): Field => [
  name,
  tag === "" ? value : value.replaceAll(tag, "{etag}"),
];

const entityTags = new WeakMap<Performer, string>();

/** The entity tag of `media/img/a.png`, whose text is each proxy's own. */
async function entityTag(subject: Performer, channel: Channel): Promise<string> {
  const known = entityTags.get(subject);
  if (known !== undefined) return known;
  const { http, https } = subject.ports;
  const { outcome } = await talkHttp1({
    port: channel === "http" ? http : https,
    tls: channel !== "http",
    steps: line("HEAD /syncmedia/img/a.png HTTP/1.1", "Connection: close"),
    upstreamBytes: () => 0,
  });
  const tag = fieldValue(outcome.fields, "etag");
  if (tag === undefined) throw new Error("media/img/a.png has no entity tag");
  entityTags.set(subject, tag);
  return tag;
}

/** Sets the response of the next case. */
async function prepare(
  upstream: RecordingUpstream,
  response: WireCase["response"],
  fill: Fill,
): Promise<void> {
  if (response === "refused") return upstream.close();
  upstream.early = typeof response === "object" && response.after === "head";
  const filled =
    typeof response === "object" ? { ...response, pieces: response.pieces.map(fill) } : fill(response ?? "");
  upstream.script = response === undefined ? greeting : () => filled;
}
