import type { ClientHttp2Session } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { ask } from "../../testkit/http2Server.js";
import { exchange } from "../../testkit/peers.js";
import { RESPONSE_CASES, type ResponseCase } from "./cases/responses.js";
import {
  CANARY,
  CANARY_LINE,
  connectSession,
  connectHttp1,
  isCanary,
  readResponses,
} from "../wire/client.js";
import type { Outcome } from "../wire/responses.js";
import { type Stage, startStage } from "../wire/stage.js";
import { echo, play } from "../wire/upstream.js";

/**
 * Upstreams that lie, split, repeat and never end. A client is never shown a misframed response: it gets this one, a 502,
 * or one that it can see is cut. Nor does anyone get what was left behind: neither the next request of the same client,
 * nor that of another.
 */
let stage: Stage;
beforeAll(async () => (stage = await startStage()));
afterAll(() => stage?.stop());

const TARGET = "/sync/case";
/** Before what follows the last piece. */
const PAUSE_MS = 5;
/** What the proxy has to see bytes after a response, and to give the connection up for them. */
const NOTICE_MS = 250;

test("no row occurs twice", () => {
  const names = RESPONSE_CASES.map(({ name }) => name);
  expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
});

describe.each(["http", "https"] as const)("over %s", (scheme) => {
  test.each(RESPONSE_CASES)("$name", async (row) => {
    const port = scheme === "http" ? stage.plain.ports.http : stage.tls.ports.https;
    const { method = "GET" } = row;
    const sent = perform(row);
    const client = await connectHttp1(port, scheme === "https");
    const other = await connectHttp1(port, scheme === "https");
    const ended = (): boolean => client.ended || client.closed;
    const responses = (): Outcome[] => readResponses(client.received, [method], ended());
    try {
      client.send(`${method} ${TARGET} HTTP/1.1\r\nHost: sync.example\r\n\r\n`);
      await client.until(() => ended() || responses()[0]?.complete === true);
      await sent();
      if (!ended()) client.send(CANARY);
      await client.until(() => ended() || responses().length > 1);
      other.send(CANARY);
      await other.until((peer) => peer.ended || readResponses(peer.received, [], false).some(isCanary));
      const [first, ...following] = responses();
      check(row, first!);
      expect(ended() || following.some(isCanary)).toBe(true);
      expect(following.every(isCanary)).toBe(true);
      expect(readResponses(other.received, [], other.ended).map(({ text }) => text)).toEqual([CANARY_LINE]);
    } finally {
      client.socket.destroy();
      other.socket.destroy();
    }
  });
});

test.each(RESPONSE_CASES)("over HTTP/2: $name", async (row) => {
  const sent = perform(row);
  const session = connectSession(stage.tls.ports.https);
  try {
    const response = await askFor(session, row.method ?? "GET", TARGET);
    check(row, response);
    await sent();
    expect((await askFor(session, "GET", "/sync/canary")).text).toBe(CANARY_LINE);
  } finally {
    session.destroy();
  }
});

test("of two Content-Types a client sees one: browsers differ in which they use", async () => {
  stage.upstream.script = () =>
    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-A: b\r\ncontent-type: text/plain\r\nContent-Length: 2\r\n\r\nok";
  const { head } = await exchange(
    stage.plain.ports.http,
    `GET ${TARGET} HTTP/1.1\r\nHost: sync.example\r\nConnection: close\r\n\r\n`,
  );
  expect(head.match(/^content-type: .*$/gim)).toEqual(["content-type: text/plain"]);
  expect(head).toContain("\r\nX-A: b");
});

/** What is compared of a response. */
type Response = Pick<Outcome, "status" | "text" | "complete">;

async function askFor(session: ClientHttp2Session, method: string, path: string): Promise<Response> {
  const { status, body, code } = await ask(session, {
    ":method": method,
    ":path": path,
    ":authority": "sync.example",
  });
  return { status, text: body, complete: code === 0 };
}

/**
 * Has the upstream respond by the row. @returns what resolves when all of it was written, and the proxy had time for it
 */
function perform(row: ResponseCase): () => Promise<void> {
  let done: Promise<void> = Promise.resolve();
  stage.upstream.script = (line, socket) => {
    if (!line.includes(TARGET)) return echo(line);
    const closed = new Promise<void>((resolve) => hasMoreBehind(row) && socket.once("close", resolve));
    done = play(socket, row).then(() =>
      hasMoreBehind(row) ? Promise.race([closed, sleep(NOTICE_MS)]) : sleep(PAUSE_MS),
    );
    return undefined;
  };
  return () => done;
}

/** Whether bytes follow a whole response: a connection with these may not be used again. */
function hasMoreBehind({ pieces, method = "GET", outcome }: ResponseCase): boolean {
  return typeof outcome === "object" && readResponses(pieces.join(""), [method], true).length > 1;
}

function check({ outcome }: ResponseCase, { status, text, complete }: Response): void {
  if (outcome === "502") expect({ status, complete }).toEqual({ status: 502, complete: true });
  else if (outcome === "cut") expect(complete).toBe(false);
  else expect({ status, body: text, complete }).toEqual({ ...outcome, complete: true });
  expect(text).not.toContain("poison");
}
