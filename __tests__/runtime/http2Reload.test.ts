import { once } from "node:events";
import { truncateSync, writeFileSync } from "node:fs";
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import * as net from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import * as tls from "node:tls";
import { logsIn, loopback, oneServer, writeCertificate } from "../../testkit/oneServer.js";
import { issue } from "../../testkit/certificates.js";
import { freePorts } from "../../testkit/ports.js";
import { openFolder, Portico } from "../../testkit/portico.js";
import { eventually } from "../../testkit/waiting.js";
import { randomText } from "../../testkit/random.js";

/** A reload while a client that is not ours downloads, and makes further requests before it can see the GOAWAY. */

const MB = 1_000_000;
const LONG = 50 * MB;

/** Between client and server; what the server says can be held up, as by a slow network. */
interface Relay {
  readonly port: number;
  hold(held: boolean): void;
  close(): void;
}

async function relayTo(port: number): Promise<Relay> {
  const ends = new Set<net.Socket>();
  const server = net.createServer((client) => {
    const there = net.connect({ port, host: "127.0.0.1" });
    ends.add(client).add(there);
    client.on("data", (chunk) => there.write(chunk));
    there.on("data", (chunk) => client.write(chunk));
    for (const [end, other] of [
      [client, there],
      [there, client],
    ] as const) {
      end.on("error", () => undefined);
      end.on("close", () => other.destroy());
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const toServer = (end: net.Socket): boolean => end.remotePort === port;
  return {
    port: (server.address() as net.AddressInfo).port,
    hold: (held) => {
      for (const end of [...ends].filter(toServer)) {
        if (held) end.pause();
        else end.resume();
      }
    },
    close: () => {
      server.close();
      for (const end of ends) end.destroy();
    },
  };
}

async function startFront(): Promise<{ portico: Portico; port: number }> {
  const folder = openFolder();
  writeFileSync(join(folder, "long.bin"), "");
  truncateSync(join(folder, "long.bin"), LONG);
  const [port] = (await freePorts(1)) as [number];
  const portico = await Portico.start(
    oneServer({
      logs: logsIn(folder),
      listeners: [loopback("https", port, writeCertificate(folder, await issue()))],
      routes: [
        { name: "files", path: "/files/", action: { type: "staticFiles", directory: folder } },
        { name: "small", path: "/", action: { type: "respond", status: 200, body: "ok" } },
      ],
    }),
  );
  return { portico, port };
}

interface Outcome {
  readonly status: number;
  readonly bytes: number;
  readonly code: number;
}

function outcomeOf(stream: ClientHttp2Stream): Promise<Outcome> {
  let status = 0;
  let bytes = 0;
  stream.on("response", (headers) => (status = headers[":status"] ?? 0));
  stream.on("data", (chunk: Buffer) => (bytes += chunk.length));
  stream.on("error", () => undefined);
  return new Promise((resolve) =>
    stream.on("close", () => resolve({ status, bytes, code: stream.rstCode ?? 0 })),
  );
}

const NO_ERROR = 0;
const REFUSED_STREAM = 7;
const CANCEL = 8;

/** Uploads that begin while the client cannot see the GOAWAY: they have bodies, and some are given up. */
async function uploadsFor(ms: number, session: ClientHttp2Session): Promise<readonly Promise<Outcome>[]> {
  const outcomes: Promise<Outcome>[] = [];
  for (const end = Date.now() + ms; Date.now() < end; await sleep(50)) {
    const stream = session.request({ ":method": "PUT", ":path": "/" });
    outcomes.push(outcomeOf(stream));
    stream.write(randomText(1_000));
    const given = outcomes.length % 3;
    if (given === 0) stream.close(CANCEL);
    else if (given === 1) stream.end("end");
  }
  return outcomes;
}

let front: { portico: Portico; port: number };
let relay: Relay;
let session: ClientHttp2Session;

beforeAll(async () => {
  front = await startFront();
  if (front.portico.ended) throw new Error(front.portico.errors);
  relay = await relayTo(front.port);
  session = connect(`https://127.0.0.1:${relay.port}`, {
    secureContext: tls.createSecureContext(),
    rejectUnauthorized: false,
  });
  session.on("error", () => undefined);
});
afterAll(async () => {
  session?.destroy();
  relay?.close();
  await front?.portico.stop();
});

test("a reload cuts no download of a client that has not seen it yet and sends further uploads", async () => {
  const stream = session.request({ ":path": "/files/long.bin" });
  const download = outcomeOf(stream);
  let begun = 0;
  stream.on("data", (chunk: Buffer) => (begun += chunk.length));
  await eventually(() => begun > 2 * MB);
  relay.hold(true);
  front.portico.signal("SIGHUP");
  await front.portico.says(/configuration reloaded/);
  // Longer than a drain waits for the client's response to its first GOAWAY.
  const uploads = await uploadsFor(2_500, session);
  relay.hold(false);
  const outcomes = await Promise.all(uploads);
  expect(await download).toEqual({ status: 200, bytes: LONG, code: NO_ERROR });
  const asked = outcomes.filter(({ code }) => code !== CANCEL);
  expect(asked.filter(({ status, code }) => status !== 200 && code !== REFUSED_STREAM)).toEqual([]);
  expect(asked.some(({ code }) => code === REFUSED_STREAM)).toBe(true);
});
