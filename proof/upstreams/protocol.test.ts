import { execFile } from "node:child_process";
import { once } from "node:events";
import * as http2 from "node:http2";
import { join } from "node:path";
import { promisify } from "node:util";
import { ask } from "./client.js";
import { NAMES, PYTHON, recipe, type ServerName } from "./servers.js";
import { stageOf } from "./stage.js";
import { nextEvent } from "../../testkit/waiting.js";

/** What is more than a request and its response: informational responses (RFC 9110, 15.2), and WebSockets (RFC 6455). */

const HINTING = NAMES.filter((name) => recipe(name).hints !== undefined);
const stage = stageOf([...HINTING, "uvicorn"]);

test.each(HINTING)("%s sends informational responses, and browsers get them over HTTP/1.1", async (name) => {
  const headers = { "Sec-Fetch-Mode": "navigate" };
  const { status, body, informational } = await ask(stage().port, `/${name}/hints`, { headers });
  expect([status, body.toString()]).toEqual([200, "after hints"]);
  expect(informational).toEqual(recipe(name).hints);
});

test.each(HINTING)("%s sends early hints, and programs do not get them over HTTP/1.1", async (name) => {
  const { status, body, informational } = await ask(stage().port, `/${name}/hints`);
  expect([status, body.toString()]).toEqual([200, "after hints"]);
  expect(informational).toEqual(recipe(name).hints!.filter((hint) => hint !== 103));
});

test.each(HINTING)("%s sends informational responses, and HTTP/2 clients get them", async (name) => {
  expect(await askOverHttp2(name)).toEqual({
    informational: recipe(name).hints,
    status: 200,
    body: "after hints",
  });
});

async function askOverHttp2(name: ServerName): Promise<unknown> {
  const client = http2.connect(`https://127.0.0.1:${stage().frontEnd.tlsPort}`, {
    rejectUnauthorized: false,
  });
  const stream = client.request({ ":path": `/${name}/hints` });
  const informational: (number | undefined)[] = [];
  stream.on("headers", (headers) => informational.push(headers[":status"]));
  let body = "";
  stream.on("data", (piece: Buffer) => (body += piece.toString()));
  const [headers] = (await nextEvent(stream, "response")) as [
    http2.IncomingHttpHeaders & http2.IncomingHttpStatusHeader,
  ];
  await once(stream, "end");
  client.close();
  return { informational, status: headers[":status"], body };
}

test.each(["ws", "wss"] as const)(
  "a WebSocket to uvicorn over %s echoes messages of every size, and closes",
  async (scheme) => {
    const { plainPort, tlsPort } = stage().frontEnd;
    const url = `${scheme}://127.0.0.1:${scheme === "ws" ? plainPort : tlsPort}/uvicorn/echo`;
    const { stdout } = await promisify(execFile)(PYTHON, [
      join(__dirname, "servers/webSocketClient.py"),
      url,
    ]);
    expect(JSON.parse(stdout)).toEqual({ echoed: [true, true, true, true, true], pong: true, code: 1000 });
  },
);

test("nothing is left of it", () => stage().conserved());
