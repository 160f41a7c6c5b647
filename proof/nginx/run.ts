import { setTimeout as sleep } from "node:timers/promises";
import type { Case } from "./deviations.js";
import { ALL, type Channel, HTTP1, type Request } from "./case.js";
import { type Facts, factsOf } from "./facts.js";
import { type ClientResult, type Step, talkHttp1 } from "./http1Client.js";
import { talkHttp2 } from "./http2Client.js";
import { type Field, fieldValue } from "./messages.js";
import { HOST, type Ports } from "./site.js";
import { type Answer, Upstreams } from "./upstreams.js";
import type { RunningProcess } from "./processes.js";

/** A proxy under test with its upstreams. */
export interface Subject {
  readonly ports: Ports;
  readonly upstreams: Upstreams;
  readonly process: RunningProcess;
}

export async function startSubject(
  ports: Ports,
  start: (ports: Ports) => Promise<RunningProcess>,
): Promise<Subject> {
  const upstreams = await Upstreams.start(ports);
  try {
    return { ports, upstreams, process: await start(ports) };
  } catch (error) {
    await upstreams.close();
    throw error;
  }
}

export async function stopSubject(subject: Subject): Promise<void> {
  await subject.process.stop().finally(() => subject.upstreams.close());
}

export interface Observed {
  readonly facts: Facts;
  /** The answer as it came, for reports. */
  readonly raw: string;
}

/** Channels that a case is run over. */
export function channelsOf(row: Case): readonly Channel[] {
  return row.over ?? (isSteps(row.send) ? HTTP1 : ALL);
}

/** Runs a case against one proxy. */
export async function observe(row: Case, channel: Channel, subject: Subject): Promise<Observed> {
  const { ports, upstreams } = subject;
  const tag = JSON.stringify(row.send).includes("{etag}") ? await entityTag(subject, channel) : "";
  const fill = filler(ports, tag);
  await upstreams.prepare(fillAnswer(row.answer, fill));
  let result: ClientResult;
  try {
    result = await talk(row, channel, subject, fill);
  } catch (error) {
    await upstreams.settle();
    throw error;
  }
  // A connection that was begun for a refused request must not be taken for one of the next case.
  if (row.wholeRequestsOnly === true) await sleep(LATE_MS);
  const all = await upstreams.settle();
  const whole = row.wholeRequestsOnly === true ? all.filter((request) => request.complete) : all;
  const requests = whole.map((request) => ({
    ...request,
    fields: request.fields.map((field) => unfilled(field, tag)),
  }));
  return { facts: factsOf(result, requests, ports, methodOf(row.send)), raw: result.raw };
}

/** How long a proxy may take to reach an upstream after its client is done. */
const LATE_MS = 60;

type Fill = (text: string) => string;

function talk(row: Case, channel: Channel, subject: Subject, fill: Fill): Promise<ClientResult> {
  const { send, patienceMs } = row;
  const { ports, upstreams } = subject;
  if (channel === "h2") {
    if (isSteps(send)) throw new Error("steps are bytes of HTTP/1.1");
    return talkHttp2({ ...http2Request(send, ports, fill), patienceMs });
  }
  const steps = isSteps(send) ? send : [http1Text(send)];
  return talkHttp1({
    port: channel === "https" || channel === "clear" ? ports.https : ports.http,
    tls: channel === "https",
    serverName: HOST,
    steps: steps.map((step) => (typeof step === "string" ? fill(step) : step)),
    upstreamBytes: () => upstreams.bytes,
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
  const chunks = (body ?? []).map((piece) => `${piece.length.toString(16)}\r\n${piece}\r\n`);
  const payload = framing === "chunked" ? `${chunks.join("")}0\r\n\r\n` : (body ?? []).join("");
  return `${lines.join("\r\n")}\r\n\r\n${payload}`;
}

function http2Request(request: Request, ports: Ports, fill: Fill) {
  const { method = "GET", target, fields = [], body, framing = "length" } = request;
  const length: Field[] =
    body !== undefined && framing === "length" ? [["content-length", String(body.join("").length)]] : [];
  return {
    port: ports.https,
    serverName: HOST,
    method,
    target: fill(target),
    authority: fill(hostOf(request) ?? ""),
    fields: [...fields.map(([name, value]): Field => [name, fill(value)]), ...length],
    body: body?.map(fill),
  };
}

const hostOf = (request: Request): string | undefined => ("host" in request ? request.host : HOST);

function methodOf(send: Case["send"]): string {
  if (!isSteps(send)) return send.method ?? "GET";
  return send.find((step: Step) => typeof step === "string")?.split(" ")[0] ?? "";
}

function isSteps(send: Case["send"]): send is readonly Step[] {
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

const entityTags = new WeakMap<Subject, string>();

/** The entity tag of `media/img/a.png`, whose text is each proxy's own. */
async function entityTag(subject: Subject, channel: Channel): Promise<string> {
  const known = entityTags.get(subject);
  if (known !== undefined) return known;
  const { http, https } = subject.ports;
  const { fields } = await talkHttp1({
    port: channel === "http" ? http : https,
    tls: channel !== "http",
    serverName: HOST,
    steps: [`HEAD /syncmedia/img/a.png HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`],
    upstreamBytes: () => 0,
    patienceMs: undefined,
  });
  const tag = fieldValue(fields, "etag");
  if (tag === undefined) throw new Error("media/img/a.png has no entity tag");
  entityTags.set(subject, tag);
  return tag;
}

function fillAnswer(answer: Answer | undefined, fill: Fill): Answer | undefined {
  if (answer === undefined || answer === "refused") return answer;
  return typeof answer === "string" ? fill(answer) : { ...answer, pieces: answer.pieces.map(fill) };
}
