import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { ask, connectHttp2 } from "../../testkit/http2Session.js";
import { connectTo, RawUpstream } from "../../testkit/peers.js";

/** Fields whose names applications may take for another name: which pass, and what the log says of the others. */

const proxied = (name: string, keepFields: readonly string[] = []) =>
  ({
    name,
    path: `/${name}`,
    action: { type: "proxy", upstream: "web", keepFields: [...keepFields] },
  }) as const;

let upstream: RawUpstream;
let front: EveryProtocol;
beforeEach(async () => {
  upstream = await new RawUpstream((peer) => {
    peer.socket.once("data", () => {
      peer.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
    });
  }).listen();
  front = await startEveryProtocol({
    routes: [proxied("drops"), proxied("keeps", ["Api_Key", "x.trace"])],
    upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}` }],
  });
});
afterEach(async () => {
  const faults = front.serving.faults.count;
  await front.close();
  await upstream.close();
  expect(faults).toBe(0);
});

const FIELDS: Readonly<Record<string, string>> = {
  api_key: "k",
  "x.trace": "t",
  x_other: "o",
  "x-usual": "u",
};

/** Sends a request with them. @returns those that the upstream got */
const CLIENTS: Readonly<Record<string, (path: string) => Promise<void>>> = {
  "HTTP/1.1": async (path) => {
    const client = await connectTo(front.plainPort);
    const lines = Object.entries(FIELDS).map(([name, value]) => `${name}: ${value}\r\n`);
    client.send(`GET /${path} HTTP/1.1\r\nHost: a\r\n${lines.join("")}\r\n`);
    await client.receives("ok");
    client.socket.destroy();
  },
  "HTTP/2": async (path) => {
    const session = connectHttp2(front.securePort);
    expect((await ask(session, { ":path": `/${path}`, ...FIELDS })).body).toBe("ok");
    session.destroy();
  },
};

describe.each(Object.keys(CLIENTS))("over %s", (protocol) => {
  test.each([
    ["drops", ["x-usual"], ["api_key", "x.trace", "x_other"]],
    ["keeps", ["api_key", "x.trace", "x-usual"], ["x_other"]],
  ])("a route that %s them passes %j, and the log names %j once", async (path, passed, dropped) => {
    for (let i = 0; i < 3; i++) await CLIENTS[protocol]!(path);
    const names = Object.keys(FIELDS).filter((name) =>
      upstream.received.includes(`\r\n${name}: ${FIELDS[name]}\r\n`),
    );
    expect(names).toEqual(passed);
    const logged = (await front.errorLog()).matchAll(
      /\[info\].* the field "(.*)" is dropped; .* `keepFields`/g,
    );
    expect([...logged].map(([, name]) => name)).toEqual(dropped);
  });
});
