import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ProxyConfigInput } from "../../../src/model/index.js";
import { askMaster } from "../../../src/runtime/supervisor/control/askMaster.js";
import type { ControlRequest, Done } from "../../../src/runtime/supervisor/control/control.js";
import { issue } from "../../../testkit/certificates.js";
import { type FrontEnd, startFrontEnd } from "../../../testkit/frontEnd.js";
import { comeToRest, type Level, levelAtRest } from "../../../testkit/level.js";
import { descriptorsOf } from "../../../testkit/processes.js";
import { publicFolder } from "../../../testkit/publicFolder.js";
import { FILLED_MEMORY } from "../../../testkit/sharedBundle.js";
import { eventually } from "../../../testkit/waiting.js";
import { HOST } from "../clients.js";
import type { Pool } from "../pool.js";
import type { Running } from "../running.js";
import { BodyServer, hungUp, IDLE_MS } from "../upstreams.js";
import { Portal, usersText } from "./closed.js";
import { contentsOf } from "./files.js";
import type { Scene } from "./scene.js";
import type { Parts } from "./table.js";

/** The deployed proxy with the features of a scene, and the servers of its upstream. */
export class Stage {
  readonly running = new Map<string, Running>();
  /** Ids of requests in the order in which servers got them. */
  readonly asked: string[] = [];
  servers: readonly BodyServer[] = [];
  frontEnd!: FrontEnd;
  /** The master; an upgrade replaces it. */
  private pid!: number;
  private portal: Portal | undefined;
  private level!: Level;
  private changes = 0;

  private constructor(
    readonly scene: Scene,
    private readonly folder: string,
  ) {}

  static async start(scene: Scene, pool: Pool): Promise<Stage> {
    const stage = new Stage(scene, publicFolder("portico-features-"));
    const shown = await (certificate ??= issue({ names: ["upstream.test"], type: "ec" }));
    stage.servers = scene.carriers.map((carrier, i) => {
      const path = join(stage.folder, `upstream${i}.sock`);
      return new BodyServer(`server${i}`, carrier, path, shown, (id) => stage.find(id));
    });
    for (const server of stage.servers) await server.up();
    if (scene.features.includes("forwardAuth")) stage.portal = await Portal.start();
    const unused = 1;
    stage.frontEnd = await startFrontEnd({
      upstreams: { web: unused, fileServer: unused, webdav: unused },
      media: contentsOf(pool),
      under: ["env", FILLED_MEMORY],
      change: (config) => stage.configured(config),
    });
    stage.pid = stage.frontEnd.process.pid!;
    stage.level = await levelAtRest(stage.proxy);
    return stage;
  }

  /** @throws Error if the master refuses */
  async ask(request: ControlRequest): Promise<Done> {
    const outcome = await askMaster(this.frontEnd.control, request, CONTROL_MS);
    if (outcome.ok) return outcome.value;
    const said = this.frontEnd.stderr().split("\n").slice(-LAST_LINES).join("\n");
    throw new Error(`${request.command} is refused: ${JSON.stringify(outcome.problems)}, after\n${said}`);
  }

  async reload(): Promise<void> {
    const file = join(this.frontEnd.folder, "portico.json");
    const config = JSON.parse(readFileSync(file, "utf8")) as ProxyConfigInput;
    const [server, ...others] = config.virtualServers;
    const more = { name: `more${++this.changes}`, path: `/more${this.changes}` };
    const routes = [...server!.routes, { ...more, action: { type: "respond" as const, status: 204 } }];
    writeFileSync(file, JSON.stringify({ ...config, virtualServers: [{ ...server, routes }, ...others] }));
    await this.ask({ command: "reload" });
  }

  async upgrade(): Promise<void> {
    const { message } = await this.ask({ command: "upgrade" });
    this.pid = Number(/process (\d+)/.exec(message)![1]);
  }

  /** Waits until the proxy holds nothing that it did not hold at first. @returns what it still does after that time */
  async atRest(): Promise<readonly string[]> {
    const hangUp = (): void => this.servers.forEach((server) => server.hangUp());
    const { kept } = await hungUp({ hangUp }, comeToRest(this.proxy, this.level, REST_MS));
    return kept;
  }

  /** Ends it. @returns its access log, and what it said that no peer is the reason for */
  async stop(): Promise<{ access: string; odd: string[] }> {
    const { frontEnd, pid } = this;
    try {
      if (pid !== frontEnd.process.pid) {
        process.kill(pid, "SIGTERM");
        await eventually(() => descriptorsOf(pid).length === 0, "for the master to end", { ms: END_MS });
      } else {
        frontEnd.process.kill("SIGTERM");
        await eventually(() => frontEnd.process.exitCode !== null, "for the master to end", { ms: END_MS });
      }
      const access = readFileSync(join(frontEnd.logDirectory, ACCESS_LOG), "latin1");
      const errors = readFileSync(join(frontEnd.logDirectory, ERROR_LOG), "latin1");
      const odd = [...errors.split("\n"), ...frontEnd.stderr().split("\n")];
      return { access, odd: odd.filter((line) => ODD.test(line)) };
    } finally {
      await frontEnd.stop();
      for (const server of this.servers) await server.kill();
      this.portal?.close();
      rmSync(this.folder, { recursive: true, force: true });
    }
  }

  private find(id: string): Running | undefined {
    this.asked.push(id);
    return this.running.get(id);
  }

  private get proxy() {
    return { process: { pid: this.pid }, control: this.frontEnd.control };
  }

  /** The access policy of the scene, with what only the stage knows. */
  private policy(): Parts["policy"] {
    const { policy } = this.scene.parts;
    const { basic, forwardAuth } = policy;
    if (forwardAuth !== undefined)
      return { ...policy, forwardAuth: { ...forwardAuth, url: this.portal!.url } };
    if (basic === undefined) return policy;
    const usersFile = join(this.folder, "users");
    writeFileSync(usersFile, usersText(), { mode: 0o600 });
    return { ...policy, basic: { ...basic, usersFile } };
  }

  private configured(config: ProxyConfigInput): ProxyConfigInput {
    const { parts, workers, carriers } = this.scene;
    const log = config.logs?.error;
    if (typeof log !== "object" || !("path" in log)) throw new Error("the deployed config has no error log");
    const logs = join(log.path, "..");
    const urls = this.servers.map(({ url }) => ({ url }));
    const servers = urls.length === 1 ? urls[0]! : { servers: urls };
    const tls = carriers.includes("https") ? { tls: { verify: false } } : {};
    const directory = join(logs, "../media/file");
    const isClosed = Object.keys(parts.policy).length > 0;
    const closed = isClosed ? { access: "closed" } : {};
    return {
      ...config,
      ...parts.config,
      ...(isClosed ? { accessPolicies: { closed: this.policy() } } : {}),
      workers,
      logs: { access: { path: join(logs, ACCESS_LOG) }, error: { path: join(logs, ERROR_LOG) } },
      upstreams: [
        ...(config.upstreams ?? []),
        { name: "features", idleTimeoutMs: IDLE_MS, ...servers, ...tls, ...parts.upstream },
      ],
      virtualServers: [
        {
          name: "features",
          serverNames: [HOST],
          listeners: config.listeners.filter(({ name }) => name !== "redirect").map(({ name }) => name),
          ...parts.server,
          routes: [
            {
              ...{ name: "web", path: "/web", requestBodyBytesMax: 0, ...closed, ...parts.proxied },
              action: { type: "proxy", upstream: "features", ...parts.action },
            },
            {
              ...{ name: "file", path: "/file", ...closed, ...parts.files },
              action: { type: "staticFiles", directory, ...parts.fileAction },
            },
          ],
        },
        ...config.virtualServers,
      ],
    };
  }
}

let certificate: ReturnType<typeof issue> | undefined;
const ACCESS_LOG = "features.access.log";
const ERROR_LOG = "features.error.log";
/** The last of them ends what Node writes of an exception that nothing has caught. */
const ODD = /\[(crit|alert|emerg)\]|exited with|was killed|uncaught|fault of portico|^Node\.js v/i;
/** Enough for an exception and its stack. */
const LAST_LINES = 30;
const CONTROL_MS = 20_000;
const REST_MS = 12_000;
const END_MS = 20_000;
