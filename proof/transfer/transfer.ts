import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import * as http2 from "node:http2";
import * as https from "node:https";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { type FrontEnd, startFrontEnd } from "../../testkit/frontEnd.js";
import { childrenOf, resident, written } from "../../testkit/processes.js";
import { pattern, patternHash } from "./pattern.js";
import { nextEvent } from "../../testkit/waiting.js";

/** One large transfer through the proxy, and what it cost the proxy. */
export interface Transfer {
  readonly direction: "upload" | "download";
  readonly protocol: "HTTP/1.1" | "HTTP/2";
  readonly bytes: number;
  readonly seconds: number;
  /** Whether every byte arrived, by SHA-256. */
  readonly intact: boolean;
  /** How much the workers' memory grew over what it was before, at most; bytes. */
  readonly memoryGrowth: number;
  /** What the proxy's processes wrote to disk meanwhile; bytes. */
  readonly diskWritten: number;
}

/**
 * Larger than any window or buffer, far smaller than a file. Most of the growth is garbage that Node 24 collects late: an
 * upload over HTTP/2 shows 20 to 130 MiB, whether it has 256 MiB or 2 GiB.
 */
export const MEMORY_GROWTH_MAX = 256 * 2 ** 20;
export const DISK_WRITTEN_MAX = 2 ** 20;

const ROOT = join(__dirname, "../..");

/** Uploads and downloads `bytes` over TLS, HTTP/1.1 and HTTP/2, through `/synchttp` of the bundled proxy. */
export async function runTransfers(bytes: number): Promise<Transfer[]> {
  const upstream = spawn(process.execPath, ["--import", "tsx", "proof/soak/upstream.ts"], {
    cwd: ROOT,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [port] = (await once(upstream.stdout!, "data")) as [Buffer];
  const daemon = Number(port.toString());
  let proxy: FrontEnd | undefined;
  try {
    proxy = await startFrontEnd({ upstreams: { web: daemon, fileServer: daemon, webdav: daemon } });
    const expected = await patternHash(bytes);
    const transfers: Transfer[] = [];
    for (const protocol of ["HTTP/1.1", "HTTP/2"] as const) {
      for (const direction of ["upload", "download"] as const) {
        transfers.push(await measure(proxy, { direction, protocol, bytes }, expected));
      }
    }
    return transfers;
  } finally {
    await proxy?.stop();
    upstream.kill();
  }
}

async function measure(
  proxy: FrontEnd,
  what: Pick<Transfer, "direction" | "protocol" | "bytes">,
  expected: string,
): Promise<Transfer> {
  const workers = childrenOf(proxy.process.pid!);
  const before = { memory: resident(workers), disk: written(workers) };
  let peak = 0;
  const watch = setInterval(() => (peak = Math.max(peak, resident(workers))), 100);
  const start = performance.now();
  const seen = await (what.protocol === "HTTP/2"
    ? overHttp2(proxy.tlsPort, what)
    : overHttp1(proxy.tlsPort, what));
  clearInterval(watch);
  return {
    ...what,
    seconds: (performance.now() - start) / 1000,
    intact: seen.bytes === what.bytes && seen.sha256 === expected,
    memoryGrowth: Math.max(0, peak - before.memory),
    diskWritten: written(workers) - before.disk,
  };
}

interface Seen {
  readonly bytes: number;
  readonly sha256: string;
}

async function overHttp1(port: number, what: Pick<Transfer, "direction" | "bytes">): Promise<Seen> {
  const upload = what.direction === "upload";
  const request = https.request({
    host: "127.0.0.1",
    port,
    rejectUnauthorized: false,
    method: upload ? "PUT" : "GET",
    path: `/synchttp/file?bytes=${what.bytes}`,
    headers: upload ? { "Content-Length": what.bytes } : {},
  });
  const response = nextEvent(request, "response");
  if (upload) await pipeline(pattern(what.bytes), request);
  else request.end();
  const [body] = (await response) as [NodeJS.ReadableStream];
  return upload ? JSON.parse(await text(body)) : await digest(body);
}

async function overHttp2(port: number, what: Pick<Transfer, "direction" | "bytes">): Promise<Seen> {
  const upload = what.direction === "upload";
  const session = http2.connect(`https://127.0.0.1:${port}`, {
    rejectUnauthorized: false,
    settings: { initialWindowSize: 4 << 20 },
  });
  session.on("connect", () => session.setLocalWindowSize(16 << 20));
  const stream = session.request({
    ":method": upload ? "PUT" : "GET",
    ":path": `/synchttp/file?bytes=${what.bytes}`,
    ...(upload ? { "content-length": what.bytes } : {}),
  });
  const sent = upload ? pipeline(pattern(what.bytes), stream) : stream.end();
  const seen = upload ? JSON.parse(await text(stream)) : await digest(stream);
  await sent;
  session.close();
  return seen;
}

async function digest(body: NodeJS.ReadableStream): Promise<Seen> {
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const chunk of body) {
    hash.update(chunk as Buffer);
    bytes += chunk.length;
  }
  return { bytes, sha256: hash.digest("hex") };
}

async function text(body: NodeJS.ReadableStream): Promise<string> {
  let all = "";
  for await (const chunk of body) all += chunk.toString();
  return all;
}
