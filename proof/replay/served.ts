import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import * as http from "node:http";
import type { ClientHttp2Session } from "node:http2";
import * as https from "node:https";
import { join } from "node:path";
import type { ProxyConfigInput } from "../../src/model/index.js";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { connectHttp2, responseOf } from "../../testkit/http2Session.js";
import { LoopbackServer, respondingWhole } from "../../testkit/peers.js";
import type { Asked, Parts } from "./generate.js";
import { publicFolder } from "../../testkit/publicFolder.js";

/** What a client got, and by it what happened to its request. */
export interface Served {
  readonly status: number;
  readonly location: string | undefined;
  /** Which upstream got what: `NAME METHOD TARGET`; undefined if none got anything. */
  readonly upstream: string | undefined;
  readonly body: string;
}

/** Upstreams that say what they got, and directories whose files say where they are. */
export async function startParts(): Promise<Parts & { stop(): Promise<void> }> {
  const folder = publicFolder("portico-replayed-");
  const directories = ["one", "two"].map((name) => join(folder, name));
  for (const directory of directories)
    for (const below of ["", "a", "a/b", "files", "b"]) {
      mkdirSync(join(directory, below), { recursive: true });
      for (const file of ["x.txt", "index.html"]) {
        const path = join(directory, below, file);
        writeFileSync(path, path);
      }
    }
  const servers = await Promise.all(UPSTREAMS.map(startUpstream));
  return {
    upstreams: servers.map(({ port }, i) => ({ name: UPSTREAMS[i]!, url: `http://127.0.0.1:${port}` })),
    directories,
    stop: async () => {
      await Promise.all(servers.map((server) => server.close()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const UPSTREAMS = ["u0", "u1", "u2"];

/** Node's own server refuses bytes beyond ASCII in a target, which upstreams have to decide about. */
const startUpstream = (name: string): Promise<LoopbackServer> =>
  new LoopbackServer(
    respondingWhole(({ startLine }) => {
      const got = Buffer.from(`${name} ${startLine.slice(0, -" HTTP/1.1".length)}`, "latin1");
      return `HTTP/1.1 200 OK\r\nX-Got: ${got.toString("base64")}\r\nContent-Length: 0\r\n\r\n`;
    }),
  ).listen();

/** A proxy with one of the configs, and clients that ask it. */
export class Front {
  private readonly plainAgent = new http.Agent({ keepAlive: true });
  private readonly secureAgent = new https.Agent({ keepAlive: true, rejectUnauthorized: false });
  private session: ClientHttp2Session | undefined;

  private constructor(private readonly proxy: EveryProtocol) {}

  static async start(config: Partial<ProxyConfigInput>, format: "json" | "combined"): Promise<Front> {
    return new Front(
      await startEveryProtocol({ routes: [], config, ...(format === "json" ? { format } : {}) }),
    );
  }

  get config() {
    return this.proxy.serving.config;
  }

  log(): Promise<string> {
    return this.proxy.accessLog();
  }

  ask(asked: Asked): Promise<Served> {
    return asked.protocol === "h2" ? this.overHttp2(asked) : this.overHttp1(asked);
  }

  async stop(): Promise<void> {
    this.plainAgent.destroy();
    this.secureAgent.destroy();
    this.session?.destroy();
    await this.proxy.close();
  }

  private overHttp1({ protocol, method, host, target, body }: Asked): Promise<Served> {
    const secure = protocol === "https";
    const where = secure
      ? { port: this.proxy.securePort, agent: this.secureAgent }
      : { port: this.proxy.plainPort, agent: this.plainAgent };
    const headers = { Host: host, ...(body === "" ? {} : { "Content-Length": body.length }) };
    const options = { host: "127.0.0.1", ...where, method, path: target, headers, setHost: false };
    return new Promise((resolve, reject) => {
      const request = (secure ? https : http).request(options, (response) => {
        let text = "";
        response.setEncoding("latin1");
        response.on("data", (piece: string) => (text += piece));
        response.on("error", reject);
        response.on("end", () => resolve(servedOf(response.statusCode!, response.headers, text)));
      });
      request.on("error", reject).end(body);
    });
  }

  private async overHttp2({ method, host, target, body: sent }: Asked): Promise<Served> {
    if (this.session === undefined || this.session.closed || this.session.destroyed)
      this.session = connectHttp2(this.proxy.securePort);
    const fields = { ":method": method, ":authority": host, ":path": target };
    const length = sent === "" ? {} : { "content-length": sent.length };
    const stream = this.session.request({ ...fields, ...length }, { endStream: sent === "" });
    if (sent !== "") stream.end(sent);
    const { status, headers, body, code } = await responseOf(stream);
    if (status === 0 || code !== 0) throw new Error(`no whole response: reset with ${code}`);
    return servedOf(status, headers as http.IncomingHttpHeaders, body);
  }
}

function servedOf(status: number, headers: http.IncomingHttpHeaders, body: string): Served {
  const got = headers["x-got"] as string | undefined;
  const upstream = got === undefined ? undefined : Buffer.from(got, "base64").toString("latin1");
  return { status, location: headers.location, upstream, body };
}
