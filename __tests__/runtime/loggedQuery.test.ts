import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { ask, connectHttp2 } from "../../testkit/http2Session.js";
import { connectTo, LoopbackServer } from "../../testkit/peers.js";

/** Queries with secrets, in each line of each log that shows a URL. */

let front: EveryProtocol;
/** Ends each connection at once, so that error logs name the request. */
const upstream = new LoopbackServer((socket) => socket.destroy());
beforeAll(() => upstream.listen());
afterAll(() => upstream.close());
afterEach(async () => {
  const faults = front.serving.faults.count;
  await front.close();
  expect(faults).toBe(0);
});

const QUERY = "?a=&access_token=s3cret&b=s3cret?x=s3cret;c=s3cret%26&plain";
const NAMES = "?a=*&access_token=*&b=*;c=*&plain";

const send: Readonly<Record<string, (path: string) => Promise<void>>> = {
  "HTTP/1.1": async (path) => {
    const client = await connectTo(front.plainPort);
    client.send(`GET ${path} HTTP/1.1\r\nHost: a\r\nReferer: http://a${path}\r\nConnection: close\r\n\r\n`);
    await client.until(({ ended, closed }) => ended || closed);
  },
  "HTTP/2": async (path) => {
    const session = connectHttp2(front.securePort);
    await ask(session, { ":path": path, referer: `http://a${path}` });
    session.destroy();
  },
};

describe.each([[undefined], ["json"]] as const)("an access log of the format %s", (format) => {
  test.each([
    ["whole", QUERY],
    ["names", NAMES],
    ["none", ""],
  ] as const)("with queries %s has %j, and so has the error log", async (logQuery, shown) => {
    front = await startEveryProtocol({
      routes: [{ name: "a", path: "/", logQuery, action: { type: "proxy", upstream: "web" } }],
      upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}` }],
      format,
    });
    for (const one of Object.values(send)) for (const query of [QUERY, ""]) await one(`/p${query}`);
    const access = (await front.accessLog()).trimEnd().split("\n");
    expect(access).toHaveLength(4);
    const urls = access.flatMap((line) => line.match(/\/p[^ "]*/g));
    expect(urls).toEqual([shown, "", shown, ""].flatMap((query) => [`/p${query}`, `/p${query}`]));
    const errors = await front.errorLog();
    // The request and the referrer.
    expect(errors.match(/\/p[^ "]*/g)).toEqual(urls);
    expect(`${access.join("\n")}${errors}`.includes("s3cret")).toBe(logQuery === "whole");
  });
});
