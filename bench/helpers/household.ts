import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { Agent, request as requestHttps } from "node:https";
import { connect } from "node:net";
import { connect as connectTls } from "node:tls";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * 50 devices of a household, all at once, half of them over HTTP/2: some synchronize, some browse, some stream. Arguments:
 * port, seconds, path of a large file, and the names of three sites, one for each sort of device. Prints the latencies of
 * the browsers' requests in milliseconds, how much was done, and how many requests failed.
 */
const [portText, secondsText, largeFile, ...names] = process.argv.slice(2) as [
  string,
  string,
  string,
  ...string[],
];
const port = Number(portText);
const [syncName, browseName, streamName] = names as [string, string, string];
const [SYNCHRONIZE, BROWSE, STREAM] = [20, 20, 10];
const end = performance.now() + Number(secondsText) * 1000;

const UPLOADED = randomBytes(64 * 1024);
const PROPFIND = Buffer.from('<?xml version="1.0"?><propfind xmlns="DAV:"><allprop/></propfind>');
/** What a page has beside itself. */
const ASSETS = [
  "/syncmedia/10k.bin",
  "/sync/small",
  "/syncmedia/10k.bin",
  "/sync/small",
  "/syncmedia/10k.bin",
];
const RANGE_BYTES = 8 * 2 ** 20;
const RANGES = 16;
/** 16 Mbit/s: a film in 1080p. */
const STREAMED_BYTES_PER_SECOND = 2_000_000;

let devices = 0;
const latencies: number[] = [];
const done = { requests: 0, failed: 0, streamed: 0 };

interface Asked {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer;
}

interface Responded {
  readonly status: number;
  readonly body: Readable;
}

/** A device with an address of its own: it has a connection over HTTP/2, or two over HTTP/1.1, as apps and scripts do. */
interface Device {
  ask(asked: Asked): Promise<Responded>;
  close(): void;
}

function overHttp1(name: string, localAddress: string): Device {
  const agent = new Agent({ keepAlive: true, maxSockets: 2, rejectUnauthorized: false });
  const servername = name === "127.0.0.1" ? "" : name;
  return {
    async ask({ method = "GET", path, headers, body }) {
      const length = body === undefined ? {} : { "Content-Length": String(body.length) };
      const request = requestHttps({
        ...{ host: "127.0.0.1", port, localAddress, agent, servername, method, path },
        headers: { Host: name, ...length, ...headers },
      });
      request.end(body);
      const [response] = await once(request, "response");
      return { status: response.statusCode, body: response };
    },
    close: () => agent.destroy(),
  };
}

function overHttp2(name: string, localAddress: string): Device {
  const servername = name === "127.0.0.1" ? "" : name;
  const session = connectHttp2(`https://127.0.0.1:${port}`, {
    createConnection: () =>
      connectTls({
        socket: connect({ host: "127.0.0.1", port, localAddress }),
        servername,
        rejectUnauthorized: false,
        ALPNProtocols: ["h2"],
      }),
  });
  // Each request that it takes with it reports it.
  session.on("error", () => undefined);
  return {
    async ask({ method = "GET", path, headers, body }) {
      const stream = session.request(
        { ":authority": name, ":method": method, ":path": path, ...headers },
        { endStream: body === undefined },
      );
      if (body !== undefined) stream.end(body);
      const [fields] = await once(stream, "response");
      return { status: fields[":status"], body: stream };
    },
    close: () => session.destroy(),
  };
}

/** One request with its response; what is not as expected is told, and counts. */
async function exchange(device: Device, asked: Asked, expected = 200, rate?: number): Promise<void> {
  try {
    const { status, body } = await device.ask(asked);
    if (status !== expected) throw new Error(`status ${status}`);
    for await (const chunk of body as AsyncIterable<Buffer>) {
      if (rate === undefined) continue;
      done.streamed += chunk.length;
      if (performance.now() > end) break;
      await sleep((chunk.length / rate) * 1000);
    }
    done.requests++;
  } catch (error) {
    done.failed++;
    console.error(`${asked.method ?? "GET"} ${asked.path}: ${(error as Error).message}`);
  }
}

async function synchronize(device: Device): Promise<void> {
  const xml = { "Content-Type": "application/xml", Depth: "1" };
  await exchange(device, { method: "PROPFIND", path: "/syncdav/folder", headers: xml, body: PROPFIND });
  await exchange(device, { method: "HEAD", path: "/sync/small" });
  await exchange(device, { method: "PUT", path: "/syncdav/file", body: UPLOADED });
  await sleep(500);
}

async function browse(device: Device): Promise<void> {
  const timed = async (path: string): Promise<void> => {
    const at = performance.now();
    await exchange(device, { path });
    latencies.push(performance.now() - at);
  };
  await timed("/sync/small");
  await Promise.all(ASSETS.map(timed));
  await sleep(1_000);
}

async function stream(device: Device): Promise<void> {
  for (let i = 0; i < RANGES && performance.now() < end; i++) {
    const [first, last] = [i * RANGE_BYTES, (i + 1) * RANGE_BYTES - 1];
    const range = { Range: `bytes=${first}-${last}` };
    await exchange(device, { path: largeFile, headers: range }, 206, STREAMED_BYTES_PER_SECOND);
  }
}

async function live(count: number, name: string, act: (device: Device) => Promise<void>): Promise<void> {
  const own = Array.from({ length: count }, (_, i) =>
    (i % 2 === 0 ? overHttp1 : overHttp2)(name, `127.0.1.${++devices}`),
  );
  await Promise.all(
    own.map(async (device, i) => {
      // Not all of them in step.
      await sleep(i * 50);
      while (performance.now() < end) await act(device);
      device.close();
    }),
  );
}

const all = [
  live(SYNCHRONIZE, syncName, synchronize),
  live(BROWSE, browseName, browse),
  live(STREAM, streamName, stream),
];
void Promise.all(all).then(() => {
  const sorted = Float64Array.from(latencies).sort();
  const at = (part: number): number => sorted[Math.floor(part * (sorted.length - 1))] ?? NaN;
  console.log(JSON.stringify({ p50: at(0.5), p99: at(0.99), ...done }));
});
