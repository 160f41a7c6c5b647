import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import * as http2 from "node:http2";
import * as https from "node:https";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { privateKey, selfSignedCertificate } from "../../demo/tlsResources.js";
import { pattern, patternHash } from "./pattern.js";

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

const ROOT = join(__dirname, "../..");
const TSX = join(ROOT, "node_modules/.bin/tsx");

/** Uploads and downloads `bytes` over TLS, HTTP/1.1 and HTTP/2, through `/synchttp` of the bundled proxy. */
export async function runTransfers(bytes: number): Promise<Transfer[]> {
  const upstream = spawn(TSX, [join(ROOT, "tools/transfer/upstream.ts")], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [port] = (await once(upstream.stdout!, "data")) as [Buffer];
  const proxy = await startProxy(Number(port.toString()));
  try {
    const expected = await patternHash(bytes);
    const transfers: Transfer[] = [];
    for (const protocol of ["HTTP/1.1", "HTTP/2"] as const) {
      for (const direction of ["upload", "download"] as const) {
        transfers.push(await measure(proxy, { direction, protocol, bytes }, expected));
      }
    }
    return transfers;
  } finally {
    await proxy.stop();
    upstream.kill();
  }
}

interface Proxy {
  readonly port: number;
  /** Worker processes. */
  readonly workers: readonly number[];
  stop(): Promise<void>;
}

async function startProxy(upstreamPort: number): Promise<Proxy> {
  const folder = mkdtempSync(join(tmpdir(), "portico-transfer-"));
  chmodSync(folder, 0o755);
  const key = privateKey({ algorithm: "RSA", rsa_bits: 2048 })["private_key_pem"]!;
  const certificate = await selfSignedCertificate({
    private_key_pem: key,
    validity_period_hours: 24,
    subject: [{ common_name: "localhost" }],
    dns_names: ["localhost"],
    allowed_uses: ["server_auth"],
  });
  writeFileSync(join(folder, "key.pem"), key, { mode: 0o600 });
  writeFileSync(join(folder, "cert.pem"), certificate["cert_pem"]!);
  const port = await freePort();
  writeFileSync(join(folder, "portico.json"), JSON.stringify(config(folder, port, upstreamPort)));
  const child = spawn(
    process.execPath,
    [join(ROOT, "dist/portico.mjs"), "serve", join(folder, "portico.json")],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  await ready(child);
  return {
    port,
    workers: childrenOf(child.pid!),
    stop: async () => {
      child.kill("SIGTERM");
      await once(child, "exit");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function config(folder: string, port: number, upstreamPort: number) {
  const action = { type: "proxy", upstream: "fileServer", strip: "raw", hostHeader: "upstream" };
  return {
    version: 1,
    workers: 1,
    logs: { access: { path: join(folder, "access.log") }, error: { path: join(folder, "error.log") } },
    listeners: [
      {
        name: "https",
        address: "127.0.0.1",
        port,
        protocol: "https",
        tls: { certificate: join(folder, "cert.pem"), key: join(folder, "key.pem") },
      },
    ],
    upstreams: [{ name: "fileServer", url: `http://127.0.0.1:${upstreamPort}` }],
    virtualServers: [
      {
        name: "application",
        serverNames: ["_"],
        default: true,
        listeners: ["https"],
        routes: [{ name: "fileServer", path: "/synchttp", action }],
      },
    ],
  };
}

async function measure(
  proxy: Proxy,
  what: Pick<Transfer, "direction" | "protocol" | "bytes">,
  expected: string,
): Promise<Transfer> {
  const before = { memory: resident(proxy.workers), disk: written(proxy.workers) };
  let peak = 0;
  const watch = setInterval(() => (peak = Math.max(peak, resident(proxy.workers))), 100);
  const start = performance.now();
  const seen = await (what.protocol === "HTTP/2" ? overHttp2(proxy.port, what) : overHttp1(proxy.port, what));
  clearInterval(watch);
  return {
    ...what,
    seconds: (performance.now() - start) / 1000,
    intact: seen.bytes === what.bytes && seen.sha256 === expected,
    memoryGrowth: Math.max(0, peak - before.memory),
    diskWritten: written(proxy.workers) - before.disk,
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
  const response = once(request, "response");
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

function ready(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    child.stdout!.once("data", () => resolve());
    child.once("exit", (code) =>
      reject(new Error(`the proxy exited with ${code}; was it built? (npm run build)`)),
    );
  });
}

function childrenOf(pid: number): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((process) => procFile(process, "stat").split(") ")[1]?.split(" ")[1] === String(pid));
}

function procFile(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "utf8");
  } catch {
    return "";
  }
}

const sum = (pids: readonly number[], value: (pid: number) => number): number =>
  pids.reduce((total, pid) => total + value(pid), 0);

const resident = (pids: readonly number[]): number =>
  sum(pids, (pid) => Number(/VmRSS:\s+(\d+)/.exec(procFile(pid, "status"))?.[1] ?? 0) * 1024);

const written = (pids: readonly number[]): number =>
  sum(pids, (pid) => Number(/^write_bytes: (\d+)/m.exec(procFile(pid, "io"))?.[1] ?? 0));

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}
