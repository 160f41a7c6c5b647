import {
  type AnswerScript,
  type BodyScript,
  type Case,
  type ClientScript,
  type ExchangeScript,
  isUpgrade,
} from "./case.js";

/** A case as a script that can be read. */
export function describe({ clients, together, reloads }: Case): string {
  const order =
    clients.length === 1
      ? "one client"
      : `${clients.length} clients, ${together ? "at the same time" : "one after the other"}`;
  return [reloads ? `${order}, during a reload` : order, ...clients.flatMap(describeClient)].join("\n");
}

function describeClient(client: ClientScript, c: number): string[] {
  const { protocol, pipelined, abort, windowBytes, newer, exchanges } = client;
  const facts = [
    { http: "HTTP/1.1", https: "HTTP/1.1 over TLS", h2: `HTTP/2, window ${windowBytes}` }[protocol],
    ...(exchanges.length > 1
      ? [pipelined ? "requests at once" : "each request after the answer before it"]
      : []),
    ...(newer ? ["requests but the first behind the last GOAWAY"] : []),
    splitsOf(client),
    ...(abort === undefined ? [] : [`leaves by ${abort.how} after ${JSON.stringify(abort.after)}`]),
  ];
  return [
    `client ${c}: ${facts.join("; ")}`,
    ...exchanges.flatMap((exchange, e) => describeExchange(client, exchange, e)),
  ];
}

function splitsOf({ splits }: ClientScript): string {
  switch (splits.kind) {
    case "joined":
      return "bytes joined";
    case "parts":
      return splits.apart ? "a write for each part, a moment apart" : "a write for each part";
    case "bytes":
      return "byte by byte";
    case "border":
      return `split at byte ${splits.at}`;
    case "some":
      return `split at ${splits.at.map((at) => at.toFixed(3)).join(", ")} of the bytes`;
  }
}

function describeExchange(client: ClientScript, exchange: ExchangeScript, e: number): string[] {
  const { method, to, upgrade, expect, body, tunnel, answer } = exchange;
  const connect = upgrade && client.protocol === "h2";
  const facts = [
    connect ? "CONNECT with :protocol websocket" : `${method}${upgrade ? " with Upgrade: websocket" : ""}`,
    ...(to === "plain" ? [] : [`${to} route`]),
    ...(expect === "none"
      ? []
      : [`Expect: 100-continue, ${expect === "waits" ? "body waits" : "body follows"}`]),
    ...(body === undefined ? [] : [bodyOf(body)]),
    ...(isUpgrade(client, exchange)
      ? [
          `${tunnel.up} bytes up${tunnel.early ? " at once" : ""}, ${tunnel.down} down, ended by the ${tunnel.endedBy}`,
        ]
      : []),
  ];
  return [`  request ${e}: ${facts.join("; ")}`, `  answer ${e}: ${answerOf(answer)}`];
}

function bodyOf({ framing, bytes, off, joined, piece, padding, end, flaw }: BodyScript): string {
  const facts = [
    framing === "length" ? `Content-Length ${bytes}` : `${bytes} bytes without a length`,
    ...(off === 0
      ? []
      : [
          off < 0
            ? `${-off} too few are sent`
            : `${off} too many are sent, ${joined ? "with" : "behind"} the last piece`,
        ]),
    `in pieces of ${piece}`,
    ...(padding === 0 ? [] : [`padded by ${padding}`]),
    `end: ${end}`,
    ...(flaw === "none" ? [] : [`flaw: ${flaw}`]),
  ];
  return `body of ${facts.join(", ")}`;
}

const HELD = {
  no: [],
  head: ["held until all have sent what they will"],
  half: ["half of it held until all have sent what they will"],
  forever: ["held forever"],
} as const;

function answerOf({
  when,
  held,
  informational,
  status,
  framing,
  bytes,
  piece,
  apart,
  flaw,
  then,
}: AnswerScript): string {
  const at = {
    head: "with the request's head",
    half: "with half of its body",
    complete: "to the whole request",
  }[when];
  return [
    [...informational, status].join(", "),
    `${framing === "length" ? `Content-Length ${bytes}` : `${bytes} bytes, ${framing}`}${piece < bytes ? ` in pieces of ${piece}` : ""}${apart ? ", a moment apart" : ""}`,
    at,
    ...HELD[held],
    ...(flaw === "none" ? [] : [`flaw: ${flaw}`]),
    `then ${then}`,
  ].join("; ");
}
