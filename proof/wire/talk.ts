import type { OutgoingHttpHeaders } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { responseOf } from "../../testkit/http2Session.js";
import type { Accepted } from "../../testkit/peers.js";
import { eventually } from "../../testkit/waiting.js";
import type { Field } from "../../testkit/messages.js";
import type { Step } from "./case.js";
import { closeBy, connectHttp1, connectSession } from "./client.js";
import { Outcome, receivedResponses } from "./responses.js";

export interface Http1Options {
  readonly port: number;
  readonly tls: boolean;
  readonly steps: readonly Step[];
  /** Bytes that the upstreams received so far. */
  readonly upstreamBytes: () => number;
  /** How long a response may take, before the connection counts as silent. */
  readonly patienceMs?: number;
}

/** What came back. */
export interface ClientResult {
  readonly outcome: Outcome;
  /** What became of the connection after the response: whether it took another request. */
  readonly connection: "open" | "closed" | "silent" | "";
  /** Every byte, for reports. */
  readonly raw: string;
}

type Until = Extract<Step, { until: unknown }>["until"];

const PATIENCE_MS = 4_000;
const WAITING = { ms: PATIENCE_MS };

/**
 * Runs a client on a raw connection. It is none of a timeline's, which refuse what is not strict, and whose connections
 * are over once all responses are there: here it is asked then whether the connection goes on.
 */
export async function talkHttp1(options: Http1Options): Promise<ClientResult> {
  const { steps, upstreamBytes, patienceMs = PATIENCE_MS } = options;
  const peer = await connectHttp1(options.port, options.tls);
  const method = methodOf(steps);
  const ended = (): boolean => peer.ended || peer.closed;
  const received = (): Outcome => receivedResponses(peer.received, [method], ended())[0] ?? new Outcome();
  const reached = (until: Until): Promise<unknown> => {
    if (typeof until === "object")
      return eventually(() => ended() || upstreamBytes() >= until.upstreamBytes, undefined, WAITING);
    const told = {
      continue: ({ informational }: Outcome) => informational.includes(100),
      response: ({ startLine }: Outcome) => startLine !== "",
    };
    return peer.until(() => ended() || told[until](received()), PATIENCE_MS);
  };
  const result = (connection: ClientResult["connection"]): ClientResult => {
    const outcome = received();
    // HTTP/0.9 has no head; its body ends with the connection.
    if (outcome.startLine === "" && ended()) outcome.end = "complete";
    return { outcome, connection, raw: peer.received };
  };
  try {
    for (const step of steps) {
      if (typeof step === "string") peer.send(step);
      else if ("pauseMs" in step) await sleep(step.pauseMs);
      else if ("close" in step) {
        closeBy(peer.socket, step.close);
        if (step.close !== "half") return result("");
      } else await comes(reached(step.until));
    }
    const responded = (): boolean => ended() || received().complete;
    if (!(await comes(peer.until(responded, patienceMs)))) return result("silent");
    const closes = steps.some((step) => typeof step === "object" && "close" in step);
    return { ...result(""), connection: closes ? "" : await probe(peer, ended) };
  } finally {
    peer.socket.destroy();
  }
}

export const methodOf = (steps: readonly Step[]): string =>
  steps.find((step) => typeof step === "string")?.split(" ")[0] ?? "";

const comes = (awaited: Promise<unknown>): Promise<boolean> =>
  awaited.then(
    () => true,
    () => false,
  );

/** Sends a request that no upstream sees, and looks whether it gets a response. */
async function probe(peer: Accepted, ended: () => boolean): Promise<ClientResult["connection"]> {
  if (ended()) return "closed";
  const before = peer.received.length;
  peer.send("GET /persistent HTTP/1.1\r\nHost: nobody.example\r\n\r\n");
  await comes(peer.until(() => ended() || peer.received.length > before, PATIENCE_MS));
  if (peer.received.length > before) return "open";
  return ended() ? "closed" : "silent";
}

export interface Http2Options {
  readonly port: number;
  readonly method: string;
  readonly target: string;
  readonly authority: string;
  readonly fields: readonly Field[];
  /** Pieces of the body; undefined for none, and the stream is closed with the head. */
  readonly body: readonly string[] | undefined;
  /** How long a response may take, before the stream counts as silent. */
  readonly patienceMs?: number;
}

/**
 * Sends one request over HTTP/2, by Node's own client: that of a timeline, which places every frame, reads fields with the
 * proxy's decoder, and a comparison would not see what that gets wrong.
 */
export async function talkHttp2(options: Http2Options): Promise<ClientResult> {
  const session = connectSession(options.port);
  const stream = session.request(headersOf(options), { endStream: options.body === undefined });
  let connection: ClientResult["connection"] = "";
  const patience = setTimeout(() => {
    connection = "silent";
    stream.close();
  }, options.patienceMs ?? PATIENCE_MS);
  try {
    for (const piece of options.body ?? []) stream.write(Buffer.from(piece, "latin1"));
    if (options.body !== undefined) stream.end();
    let ended = false;
    stream.on("end", () => (ended = true));
    const { status, raw: list, body, code, informational } = await responseOf(stream);
    const startLine = status === 0 ? "" : `HTTP/2.0 ${status}`;
    const fields = pairs(list).filter(([name]) => !name.startsWith(":"));
    const outcome = Object.assign(new Outcome(), { startLine, fields, status, framing: "" });
    outcome.informational.push(...informational.map((headers) => Number(headers[":status"])));
    outcome.pieces.push(Buffer.from(body, "latin1"));
    if (ended) outcome.end = code === 0 ? "complete" : "cut";
    const raw = `${startLine}\n${fields.map((field) => field.join(": ")).join("\n")}\nreset ${code}`;
    return { outcome, connection, raw };
  } finally {
    clearTimeout(patience);
    session.destroy();
  }
}

function headersOf({ method, target, authority, fields }: Http2Options): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {
    ":method": method,
    ":scheme": "https",
    ":authority": authority,
    ":path": target,
  };
  for (const [name, value] of fields) {
    const before = headers[name.toLowerCase()];
    headers[name.toLowerCase()] = before === undefined ? value : [before, value].flat().map(String);
  }
  return headers;
}

const pairs = (raw: readonly string[]): Field[] =>
  raw.flatMap((name, i): Field[] => (i % 2 === 0 ? [[name, raw[i + 1]!]] : []));
