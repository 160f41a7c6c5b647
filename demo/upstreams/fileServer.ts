import { createHash } from "node:crypto";
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, readdir, rename, rm, stat } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import path from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";

/**
 * The file server daemon: keeps what is uploaded and gives it back. Bodies stream to and from disk, of any size.
 *
 * `PUT` or `POST /files/NAME` stores and responds with name, bytes and SHA-256 as JSON; `GET` and `HEAD /files/NAME`
 * return the file; `GET /` lists what there is. The proxy strips its prefix, so paths here begin with `/`.
 */
export async function createFileServer(folder: string): Promise<Server> {
  await mkdir(folder, { recursive: true });
  const store = new Store(folder);
  const server = createServer((request, response) => {
    handle(store, request, response).catch((error: NodeJS.ErrnoException) => {
      if (response.headersSent) return void response.destroy();
      const missing = error.code === "ENOENT";
      sendJson(response, missing ? 404 : 500, { error: missing ? "no such file" : error.message });
    });
  });
  // Node's five minutes for a whole request would cut off long uploads.
  server.requestTimeout = 0;
  return server;
}

interface Stored {
  readonly name: string;
  readonly bytes: number;
  readonly sha256: string;
}

async function handle(store: Store, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method = "" } = request;
  const target = request.url!.split("?")[0]!;
  if (target === "/" || target === "/files/") return sendJson(response, 200, { files: await store.list() });
  const name = fileName(target);
  if (name === undefined) return sendJson(response, 404, { error: "paths are /files/NAME" });
  if (method === "PUT" || method === "POST") return sendJson(response, 201, await store.save(name, request));
  if (method === "GET" || method === "HEAD") return store.send(name, method, response);
  response.setHeader("Allow", "GET, HEAD, PUT, POST");
  sendJson(response, 405, { error: `${method} is not for files` });
}

/** One segment that is not a dot file: nothing else can leave the folder or hide in it. */
function fileName(target: string): string | undefined {
  try {
    const name = decodeURIComponent(/^\/files\/([^/]+)$/.exec(target)?.[1] ?? "");
    return name === "" || name.startsWith(".") || /[/\\\u0000]/.test(name) ? undefined : name;
  } catch {
    return undefined;
  }
}

class Store {
  private readonly sums = new Map<string, string>();
  private uploads = 0;

  constructor(private readonly folder: string) {}

  /** Stores a body under a name once it has arrived whole; one that is cut off leaves nothing behind. */
  async save(name: string, body: IncomingMessage): Promise<Stored> {
    const draft = path.join(this.folder, `.upload-${++this.uploads}`);
    const hash = createHash("sha256");
    let bytes = 0;
    const tap = new Transform({
      transform(chunk: Buffer, _encoding, next) {
        hash.update(chunk);
        bytes += chunk.length;
        next(null, chunk);
      },
    });
    try {
      await pipeline(body, tap, createWriteStream(draft));
      await rename(draft, path.join(this.folder, name));
    } catch (error) {
      await rm(draft, { force: true });
      throw error;
    }
    const sha256 = hash.digest("hex");
    this.sums.set(name, sha256);
    return { name, bytes, sha256 };
  }

  async send(name: string, method: string, response: ServerResponse): Promise<void> {
    const file = path.join(this.folder, name);
    const { size } = await stat(file);
    response.writeHead(200, {
      "Content-Type": "application/octet-stream",
      "Content-Length": size,
      "X-Sha256": this.sums.get(name) ?? "",
    });
    if (method === "HEAD") response.end();
    else await pipeline(createReadStream(file), response);
  }

  async list(): Promise<Stored[]> {
    const names = (await readdir(this.folder)).filter((name) => !name.startsWith(".")).sort();
    return Promise.all(
      names.map(async (name) => {
        const { size } = await stat(path.join(this.folder, name));
        return { name, bytes: size, sha256: this.sums.get(name) ?? "" };
      }),
    );
  }
}

function sendJson(response: ServerResponse, status: number, value: unknown): void {
  const body = `${JSON.stringify(value)}\n`;
  response.writeHead(status, {
    "Content-Type": "application/json",
    "Content-Length": Buffer.byteLength(body),
  });
  response.end(response.req.method === "HEAD" ? undefined : body);
}
