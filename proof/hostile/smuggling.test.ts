import { wholeMessages } from "../../testkit/messages.js";
import { CANARY, connectHttp1, isCanary, readResponses } from "../wire/client.js";
import { CHUNK_CASES } from "../../testkit/cases/chunks.js";
import { FRAMING_CASES } from "../../testkit/cases/framing.js";
import { HEAD_CASES } from "../../testkit/cases/heads.js";
import type { Outcome, RequestCase } from "../../testkit/cases/requestCase.js";
import { disagreements } from "../wire/readers.js";
import type { Outcome as Response } from "../wire/responses.js";
import { type Stage, startStage } from "../wire/stage.js";
import type { RecordedConnection } from "../wire/upstream.js";

/**
 * Raw requests that parsers may read differently. Whatever becomes of one, the upstream never receives bytes that
 * strict and lenient parsers read differently, and the connection stays in sync or closes: a canary after the request
 * gets its own response, or none.
 */
const CASES: readonly RequestCase[] = [...FRAMING_CASES, ...CHUNK_CASES, ...HEAD_CASES];

let stage: Stage;
beforeAll(async () => (stage = await startStage()));
afterAll(() => stage?.stop());

test("the table is large, and no row occurs twice", () => {
  expect(CASES.length).toBeGreaterThanOrEqual(300);
  expect(repeated(CASES.map(({ bytes }) => bytes))).toEqual([]);
  expect(repeated(CASES.map(({ name }) => name))).toEqual([]);
});

describe.each(["http", "https"] as const)("over %s", (scheme) => {
  test.each(CASES)("$name", async ({ bytes, outcome }) => {
    const { plain, tls, upstream } = stage;
    upstream.forget();
    const port = scheme === "http" ? plain.ports.http : tls.ports.https;
    const responses = await talk(port, scheme === "https", bytes, outcome);
    const seen = await upstream.settled(2_000);
    expect(seen.flatMap((connection) => disagreements(connection.bytes))).toEqual([]);
    expect(unfinished(seen)).toEqual([]);
    expect(responses).toEqual(expectedResponses(outcome));
    expect(requestsTo(seen, "/sync/canary")).toBe(
      responses.filter((response) => response === "canary").length,
    );
    if (outcome !== "two") expect(requestsTo(seen, "/sync/smuggled")).toBe(0);
    if (typeof outcome === "number") expect(wholeRequests(seen)).toBe(0);
  });
});

/** Sends a case with the canary after it, and tells the responses: statuses, or `canary`, then how it ended. */
async function talk(port: number, secure: boolean, bytes: string, outcome: Outcome): Promise<string[]> {
  const client = await connectHttp1(port, secure);
  const ended = (): boolean => client.ended || client.closed;
  const methods = [bytes.trimStart().split(" ")[0]!];
  const responses = (): Response[] => readResponses(client.received, methods, ended());
  try {
    client.send(bytes + CANARY);
    // Where nothing is to come, there is nothing to wait for but time.
    const ms = outcome === "waits" ? 150 : 4_000;
    await client
      .until(() => ended() || responses().some(isCanary), ms)
      .catch((error: unknown) => {
        if (outcome !== "waits") throw error;
      });
    const words = responses().map((response) => (isCanary(response) ? "canary" : word(response)));
    return ended() ? [...words, "closed"] : words;
  } finally {
    client.socket.destroy();
  }
}

const word = ({ status, text, complete }: Response): string =>
  complete ? String(status) : `${status}, cut: ${text}`;

function expectedResponses(outcome: Outcome): unknown {
  const served = expect.stringMatching(/^(?:200|404|405|301)$/);
  if (typeof outcome === "number") return [String(outcome), "closed"];
  if (outcome === "passes") return [served, "canary"];
  if (outcome === "two") return [served, served, "canary"];
  if (outcome === "last") return [served, "closed"];
  return [];
}

/** Requests that the upstream has in part, on a connection that the proxy keeps open. */
function unfinished(seen: readonly RecordedConnection[]): string[] {
  return seen
    .filter(({ bytes, closed }) => !closed && !split(bytes).whole)
    .map(({ bytes }) => bytes.toString("latin1"));
}

const wholeRequests = (seen: readonly RecordedConnection[]): number =>
  seen.reduce((sum, { bytes }) => sum + split(bytes).lines.length, 0);

const requestsTo = (seen: readonly RecordedConnection[], path: string): number =>
  seen.flatMap(({ bytes }) => split(bytes).lines).filter((line) => line.split(" ")[1]!.startsWith(path))
    .length;

/** First lines of the complete requests in some bytes. */
function split(bytes: Buffer): { lines: string[]; whole: boolean } {
  const { messages, rest } = wholeMessages(bytes, { type: "request" });
  return { lines: messages.map(({ startLine }) => startLine), whole: rest === 0 };
}

const repeated = (texts: readonly string[]): string[] => texts.filter((text, i) => texts.indexOf(text) !== i);
