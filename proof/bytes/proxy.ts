import { rmSync } from "node:fs";
import { publicFolder } from "../../testkit/publicFolder.js";
import { join } from "node:path";
import type { ProxyConfigInput } from "../../src/model/index.js";
import { WITHOUT } from "../../src/runtime/sockets/node/pieces.js";
import { type FrontEnd, startFrontEnd } from "../../testkit/frontEnd.js";
import { Watched } from "../../testkit/level.js";
import { FILLED_MEMORY } from "../../testkit/sharedBundle.js";
import { type Case, type Exchange, UPSTREAMS } from "./case.js";
import { connectionsOf, HOST } from "./clients.js";
import { fileName, filesOf } from "./files.js";
import { Pool } from "./pool.js";
import { Running } from "./running.js";
import { hungUp, Upstreams } from "./upstreams.js";

/** The deployed proxy with one worker, so that all exchanges share its buffers, and what is in front of it and behind it. */
export class Proxy {
  private readonly running = new Map<string, Running>();
  /** Cases so far: a case may be played several times at once. */
  private played = 0;
  private watched!: Watched;
  private upstreams!: Upstreams;
  private frontEnd!: FrontEnd;
  /** Exchanges whose client or upstream left since all was at rest: the other side may still have read. */
  private abandoned: { readonly number: number; readonly running: Running }[] = [];

  private constructor(
    private readonly pool: Pool,
    private readonly folder: string,
  ) {}

  /** @param without pieces of Node that the proxy does without; default: as in this process */
  static async start(seed: number, without?: string): Promise<Proxy> {
    const proxy = new Proxy(new Pool(seed), publicFolder("portico-bytes-"));
    const upstreams = await Upstreams.start(proxy.folder, (id) => proxy.running.get(id));
    proxy.upstreams = upstreams;
    const unused = 1;
    proxy.frontEnd = await startFrontEnd({
      upstreams: { web: unused, fileServer: unused, webdav: unused },
      media: Object.fromEntries(
        Object.entries(filesOf(proxy.pool)).map(([name, content]) => [`file/${name}`, content]),
      ),
      under: ["env", FILLED_MEMORY, ...(without === undefined ? [] : [`${WITHOUT}=${without}`])],
      change: (config) => withMatrix(config, upstreams),
    });
    proxy.watched = await Watched.start(proxy.frontEnd);
    return proxy;
  }

  /**
   * Plays a case.
   * @param patienceMs how long an exchange may stand still: how long all of it takes depends on the machine
   * @returns what it broke, each with the exchange
   */
  async play(one: Case, number: number, patienceMs: number): Promise<Fault[]> {
    const connections = connectionsOf(one, this.frontEnd);
    const faults: Fault[] = [];
    const begin = ++this.played;
    const play = async (exchange: Exchange, e: number): Promise<void> => {
      const id = `${begin}.${e}`;
      const running = new Running(id, exchange, this.pool, one.recordBytes);
      this.running.set(id, running);
      const isOver = await moving(patienceMs, connections.play(running, pathOf(exchange, id)), running);
      if (!isOver) faults.push({ exchange, text: `no byte for ${patienceMs / 1_000} s` });
      for (const text of running.judge()) faults.push({ exchange, text });
      if (running.abandoned) this.abandoned.push({ number, running });
      else this.running.delete(id);
    };
    if (one.together) await Promise.all(one.exchanges.map(play));
    else for (const [e, exchange] of one.exchanges.entries()) await play(exchange, e);
    await connections.close();
    return faults;
  }

  /** Waits until the proxy holds nothing that it did not hold at first. @returns what it still does, and what came late */
  async atRest(patienceMs: number): Promise<{ laws: string[]; late: (Fault & { number: number })[] }> {
    const laws = await hungUp(this.upstreams, this.watched.atRest(patienceMs));
    const late = this.abandoned.flatMap(({ number, running }) =>
      running.judge().map((text) => ({ number, exchange: running.exchange, text })),
    );
    for (const { running } of this.abandoned.splice(0)) this.running.delete(running.id);
    return { laws, late };
  }

  async stop(): Promise<void> {
    await this.frontEnd.stop();
    await this.upstreams.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export interface Fault {
  readonly exchange: Exchange;
  readonly text: string;
}

const pathOf = ({ responder, down, framing }: Exchange, id: string): string =>
  responder === "file" ? `/file/${fileName(down, framing === "range")}?${id}` : `/${responder}/${id}`;

/** Waits until an exchange is over. @returns false if nothing of it has moved for that time */
async function moving(ms: number, work: Promise<void>, { up, down }: Running): Promise<boolean> {
  for (;;) {
    const before = up.bytes + down.bytes;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<false>((resolve) => (timer = setTimeout(() => resolve(false), ms)));
    const isOver = await Promise.race([work.then(() => true as const), late]);
    clearTimeout(timer);
    if (isOver || up.bytes + down.bytes === before) return isOver;
  }
}

function withMatrix(config: ProxyConfigInput, { inputs }: Upstreams): ProxyConfigInput {
  const log = config.logs?.error;
  const logs = typeof log === "object" && "path" in log ? join(log.path, "..") : undefined;
  if (logs === undefined) throw new Error("the deployed config has no error log");
  const directory = join(logs, "../media/file");
  return {
    ...config,
    workers: 1,
    logs: { access: "off", error: { path: join(logs, "bytes.error.log") } },
    upstreams: [...(config.upstreams ?? []), ...inputs],
    virtualServers: [
      {
        name: "bytes",
        serverNames: [HOST],
        listeners: config.listeners.filter(({ name }) => name !== "redirect").map(({ name }) => name),
        routes: [
          ...UPSTREAMS.map((name) => ({
            name,
            path: `/${name}`,
            requestBodyBytesMax: BODY_BYTES_MAX,
            action: { type: "proxy" as const, upstream: name },
          })),
          { name: "file", path: "/file", action: { type: "staticFiles", directory } },
        ],
      },
      ...config.virtualServers,
    ],
  };
}

const BODY_BYTES_MAX = 64 * 1_048_576;
