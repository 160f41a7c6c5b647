import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import * as http from "node:http";
import * as net from "node:net";
import { join } from "node:path";
import * as tls from "node:tls";
import { setTimeout as sleep } from "node:timers/promises";
import { loopback, oneServer, writeCertificate } from "../../testkit/oneServer.js";
import { freePorts } from "../../testkit/ports.js";
import { issue } from "../../testkit/certificates.js";
import { END_STREAM, Frame, GET, RawClient } from "../../testkit/http2RawClient.js";
import { alive, openFolder, Portico } from "../../testkit/portico.js";
import { eventually } from "../../testkit/waiting.js";
import { randomBody } from "../../testkit/random.js";

/**
 * A reload while clients do not read: what they asked for before waits in the kernel and in the proxy, and arrives whole
 * however late they read it. An old worker may close only what was read.
 */

/** What is asked for: it fits the kernel's buffers, or it does not, or not nearly. */
const SIZES = [100_000, 700_000, 1_500_000, 2_600_000, 3_500_000, 4_500_000, 5_500_000, 30_000_000] as const;
const SOURCES = ["/files", "/proxied"] as const;
/** Longer than a connection that is done may linger. */
const DEAF_MS = 8_000;

const content = randomBody(Math.max(...SIZES));

let folder: string;
let files: ReturnType<typeof writeCertificate>;
let upstream: http.Server;
/** What takes its time runs side by side: each has a front end of its own. */
let patient: Promise<Patience>;
let impatient: Promise<Impatience>;

beforeAll(async () => {
  folder = openFolder();
  files = writeCertificate(folder, await issue());
  for (const size of SIZES) writeFileSync(join(folder, `${size}.bin`), content.subarray(0, size));
  upstream = http.createServer((request, response) => {
    const size = Number(/\d+/.exec(request.url!)![0]);
    response.writeHead(200, { "Content-Length": size }).end(content.subarray(0, size));
  });
  upstream.listen(0, "127.0.0.1");
  await once(upstream, "listening");
  patient = readLate();
  impatient = readNever();
  // Whose test has not begun yet fails there.
  for (const each of [patient, impatient]) each.catch(() => undefined);
});

interface Front {
  readonly portico: Portico;
  readonly plainPort: number;
  readonly tlsPort: number;
  readonly accessLog: string;
}

async function startFront(name: string): Promise<Front> {
  const [plainPort, tlsPort] = (await freePorts(2)) as [number, number];
  const accessLog = join(folder, `${name}-access.log`);
  const staticFiles = { type: "staticFiles", directory: folder } as const;
  const portico = await Portico.start(
    oneServer({
      logs: { access: { path: accessLog }, error: { path: join(folder, `${name}-error.log`) } },
      upstreams: [{ name: "web", url: `http://127.0.0.1:${(upstream.address() as net.AddressInfo).port}` }],
      listeners: [loopback("http", plainPort), loopback("https", tlsPort, files)],
      routes: [
        { name: "files", path: "/files/", action: staticFiles },
        { name: "impatient", path: "/impatient/", sendTimeoutMs: 1_500, action: staticFiles },
        { name: "proxied", path: "/proxied", action: { type: "proxy", upstream: "web" } },
      ],
    }),
  );
  return { portico, plainPort, tlsPort, accessLog };
}

afterAll(async () => {
  await Promise.allSettled([patient, impatient]);
  upstream?.closeAllConnections();
  upstream?.close();
});

/** Asks, does not read until it is told to, and then reads to the end: how many bytes of the response were right. */
type Download = (path: string, size: number, reads: Promise<void>) => Promise<number>;

function overHttp1(connect: () => net.Socket): Download {
  return async (path, size, reads) => {
    const socket = connect();
    socket.on("error", () => undefined).pause();
    await once(socket, socket instanceof tls.TLSSocket ? "secureConnect" : "connect");
    socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    await reads;
    const body = new Body();
    let head: Buffer | undefined = Buffer.alloc(0);
    await new Promise<void>((resolve) => {
      socket.on("data", (chunk: Buffer) => {
        if (head === undefined) body.take(chunk);
        else {
          head = Buffer.concat([head, chunk]);
          const end = head.indexOf("\r\n\r\n");
          if (end < 0) return;
          body.take(head.subarray(end + 4));
          head = undefined;
        }
        if (body.length === size) resolve();
      });
      socket.on("close", () => resolve());
      if (socket.closed) resolve();
      socket.resume();
    });
    socket.destroy();
    return body.right;
  };
}

/** Credits what it reads piece by piece, as browsers do: what it sends must not make a reset of the proxy's close. */
const overHttp2 =
  (tlsPort: number): Download =>
  async (path, _size, reads) => {
    const client = await RawClient.connect(tlsPort);
    const window = Buffer.alloc(4);
    window.writeUInt32BE(0x3fffffff);
    client.send(Frame.SETTINGS, 0, 0, Buffer.from([0, 4, 0x3f, 0xff, 0xff, 0xff]));
    client.send(Frame.WINDOW_UPDATE, 0, 0, window);
    client.request(
      1,
      GET.map(([name, value]) => [name, name === ":path" ? path : value] as const),
    );
    client.socket.pause();
    await reads;
    window.writeUInt32BE(1_000);
    const body = new Body();
    const ended = new Promise<void>((resolve) => {
      client.onFrame = ({ type, flags, payload }) => {
        if (type !== Frame.DATA) return;
        client.send(Frame.WINDOW_UPDATE, 0, 0, window);
        body.take(payload);
        if ((flags & END_STREAM) !== 0) resolve();
      };
    });
    client.socket.resume();
    await Promise.race([ended, client.whenClosed(60_000)]);
    client.destroy();
    return body.right;
  };

/** Compares a body piece by piece: kept and put together, all of them are much to copy and to collect. */
class Body {
  length = 0;
  private same = true;

  take(piece: Buffer): void {
    this.same &&= piece.equals(content.subarray(this.length, this.length + piece.length));
    this.length += piece.length;
  }

  /** Its length, if its bytes are what they should be. */
  get right(): number {
    return this.same ? this.length : NaN;
  }
}

const downloadsFrom = ({ plainPort, tlsPort }: Front): Readonly<Record<string, Download>> => ({
  "HTTP/1.1": overHttp1(() => net.connect({ port: plainPort, host: "127.0.0.1" })),
  "HTTP/1.1 over TLS": overHttp1(() =>
    tls.connect({ port: tlsPort, host: "127.0.0.1", rejectUnauthorized: false, ALPNProtocols: ["http/1.1"] }),
  ),
  "HTTP/2": overHttp2(tlsPort),
});

interface Patience {
  readonly outcomes: readonly (readonly [what: string, length: number, size: number])[];
  readonly logged: readonly string[];
}

async function readLate(): Promise<Patience> {
  const front = await startFront("patient");
  const deaf = sleep(DEAF_MS);
  const downloads = Object.entries(downloadsFrom(front)).flatMap(([protocol, download]) =>
    SOURCES.flatMap((source) =>
      SIZES.map(async (size) => {
        const path = source === "/files" ? `/files/${size}.bin` : `/proxied/${size}`;
        return [`${protocol} ${path}`, await download(path, size, deaf), size] as const;
      }),
    ),
  );
  await sleep(1_000);
  front.portico.signal("SIGHUP");
  await front.portico.says(/configuration reloaded/);
  const outcomes = await Promise.all(downloads);
  const logged = readFileSync(front.accessLog, "utf8").split("\n").filter(Boolean);
  await front.portico.stop();
  return { outcomes, logged };
}

interface Impatience {
  /** How long after the reload the old worker was gone. */
  readonly goneMs: number;
}

async function readNever(): Promise<Impatience> {
  const front = await startFront("impatient");
  const before = front.portico.workers();
  const forever = new Promise<void>(() => undefined);
  for (const download of Object.values(downloadsFrom(front)))
    for (const size of [100_000, 30_000_000]) void download(`/impatient/${size}.bin`, size, forever);
  await sleep(1_000);
  front.portico.signal("SIGHUP");
  await front.portico.says(/configuration reloaded/);
  const reloaded = performance.now();
  await eventually(() => !before.some(alive), "for the old worker to go");
  const goneMs = performance.now() - reloaded;
  await front.portico.stop();
  return { goneMs };
}

test("a reload does not cut a client that reads late, over any protocol, of files and of proxied responses", async () => {
  const { outcomes, logged } = await patient;
  expect(outcomes).toHaveLength(3 * SOURCES.length * SIZES.length);
  expect(outcomes.filter(([, length, size]) => length !== size)).toEqual([]);
  expect(logged.filter((line) => !/ 200 \d+ /.test(line))).toEqual([]);
});

test("a client that never reads keeps an old worker no longer than its route allows", async () => {
  // Of the responses that the kernel holds nothing is known; their connections linger for five seconds.
  expect((await impatient).goneMs).toBeLessThan(12_000);
});
