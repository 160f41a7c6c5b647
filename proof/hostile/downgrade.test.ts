import { END_STREAM, Frame, type RawClient } from "../../testkit/http2RawClient.js";
import { HTTP2_CASES } from "../../testkit/cases/http2.js";
import { connectFrames } from "../wire/client.js";
import { disagreements, READERS } from "../wire/readers.js";
import { type Stage, startStage } from "../wire/stage.js";

/**
 * Requests over HTTP/2 that would be other requests once they are written out as HTTP/1.1. The upstream sees what the
 * client meant, or nothing; the connection goes on or ends.
 */
let stage: Stage;
beforeAll(async () => (stage = await startStage()));
afterAll(() => stage?.stop());

test.each(HTTP2_CASES)("$name", async (row) => {
  const { upstream, tls } = stage;
  upstream.forget();
  const client = await connectFrames(tls.ports.https);
  try {
    client.whole(1, row);
    expect(await client.outcome(1)).toBe(row.outcome);
    // The canary: a stream of the same connection, and a request of another that may reuse the upstream's.
    client.request(3, [
      [":method", "GET"],
      [":scheme", "https"],
      [":authority", "sync.example"],
      [":path", "/sync/canary"],
    ]);
    expect(await client.outcome(3)).toBe("200");
    expect(await body(client, 3)).toBe("GET /sync/canary HTTP/1.1");
  } finally {
    client.destroy();
  }
  const seen = await upstream.settled(2_000);
  expect(seen.flatMap(({ bytes }) => disagreements(bytes))).toEqual([]);
  const requests = seen.flatMap(({ bytes }) => READERS[0]!.read(bytes).messages);
  const others = requests.filter(({ target }) => target !== "/sync/canary");
  expect(others).toHaveLength(row.outcome === "200" ? 1 : 0);
  if (row.outcome === "200") expect(others[0]!.body).toBe((row.data ?? []).join(""));
  for (const { fields } of requests) expect(fields.join("\n").toLowerCase()).not.toContain("injected");
});

/** Body of a response on a stream, when it has ended. */
async function body(client: RawClient, stream: number): Promise<string> {
  await client.next((f) => f.stream === stream && (f.flags & END_STREAM) !== 0 && f.type <= Frame.HEADERS);
  const pieces = client.frames.filter((f) => f.stream === stream && f.type === Frame.DATA);
  return Buffer.concat(pieces.map((f) => f.payload)).toString("latin1");
}
