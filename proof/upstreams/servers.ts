import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "../../build/paths.js";
import { freePort, isRefused } from "../../testkit/ports.js";
import { runUnseen } from "../../testkit/unseen.js";
import { eventually } from "../../testkit/waiting.js";

/** Servers that applications run on, with one application; `servers/wsgi.py` describes its responses. */

const CACHE = join(ROOT, ".cache/upstreams");
export const PYTHON = join(CACHE, "python/bin/python");
const SOURCES = join(__dirname, "servers");

/** Makes what the servers need, unless it is there and as the sources want it: up to a minute. */
export const prepareServers = (): Promise<void> => runUnseen(join(__dirname, "prepare.sh"), [CACHE]);

/** For tests, whose time is too short to make it. */
export function requireServers(): void {
  if (!existsSync(join(CACHE, "go.stamp")))
    throw new Error(
      "the upstream servers are not ready: `npm test -- proof/` does that first, or: `npx tsx proof/prepare.ts proof/`",
    );
}

interface Place {
  readonly port: number;
  readonly folder: string;
}

export interface Recipe {
  readonly command: (place: Place) => readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Whether it keeps connections, each for two idle seconds. */
  readonly keepsConnections: boolean;
  /** Whether it sends what the application gives as content of a response that has none (RFC 9110, 6.4.1). */
  readonly overruns?: boolean;
  /** Whether its workers, when they end, close connections that they had accepted and not read from. */
  readonly dropsAtReload?: boolean;
  /** Statuses of its informational responses. */
  readonly hints?: readonly number[];
  /** Whether it starts a process for each request. */
  readonly slow?: boolean;
}

/** Seconds that every server keeps an idle connection: gunicorn's default. */
const KEPT_S = 2;

type WorkerClass = "sync" | "gthread" | "gevent";

function gunicorn(version: string, workerClass: WorkerClass, more: Partial<Recipe> = {}): Recipe {
  const options = `--workers 2 --threads ${workerClass === "gthread" ? 8 : 1} --keep-alive ${KEPT_S} --log-level error`;
  // Releases before 25 have none; its place is the same for all servers of a user.
  const control = version.startsWith("27.") ? ["--no-control-socket"] : [];
  return {
    command: ({ port }) => [
      ...[PYTHON, "-m", "gunicorn", "--worker-class", workerClass, ...options.split(" "), ...control],
      ...["--bind", `127.0.0.1:${port}`, "--chdir", SOURCES, "wsgi:application"],
    ],
    env: { PYTHONPATH: join(CACHE, `gunicorn-${version}`) },
    keepsConnections: workerClass !== "sync",
    ...more,
  };
}

export const SERVERS = {
  "gunicorn-20-sync": gunicorn("20.1.0", "sync"),
  "gunicorn-20-gthread": gunicorn("20.1.0", "gthread", { overruns: true, dropsAtReload: true }),
  "gunicorn-20-gevent": gunicorn("20.1.0", "gevent", { overruns: true }),
  "gunicorn-23-sync": gunicorn("23.0.0", "sync"),
  "gunicorn-23-gthread": gunicorn("23.0.0", "gthread", { overruns: true, dropsAtReload: true }),
  "gunicorn-23-gevent": gunicorn("23.0.0", "gevent", { overruns: true }),
  "gunicorn-27-sync": gunicorn("27.0.1", "sync"),
  "gunicorn-27-gthread": gunicorn("27.0.1", "gthread", { hints: [103] }),
  "gunicorn-27-gevent": gunicorn("27.0.1", "gevent"),
  uvicorn: {
    command: ({ port }) => [
      ...[PYTHON, "-m", "uvicorn", "--log-level", "error", "--timeout-keep-alive", String(KEPT_S)],
      ...["--port", String(port), "--app-dir", SOURCES, "asgi:application"],
    ],
    keepsConnections: true,
    overruns: true,
  },
  go: {
    command: ({ port }) => [join(CACHE, "go"), `127.0.0.1:${port}`, String(KEPT_S)],
    keepsConnections: true,
    hints: [103, 102],
  },
  node: {
    command: ({ port }) => [process.execPath, join(SOURCES, "node.js"), String(port), String(KEPT_S)],
    keepsConnections: true,
    hints: [103, 102],
  },
  apache: {
    command: ({ port, folder }) => {
      writeFileSync(join(folder, "httpd.conf"), apacheConfig(port, folder));
      return ["/usr/sbin/apache2", "-d", folder, "-f", join(folder, "httpd.conf"), "-D", "FOREGROUND"];
    },
    keepsConnections: true,
    slow: true,
  },
} satisfies Record<string, Recipe>;

export type ServerName = keyof typeof SERVERS;
export const NAMES = Object.keys(SERVERS) as ServerName[];
export const recipe = (name: ServerName): Recipe => SERVERS[name];

/** The application by CGI, with Debian's interpreter: a user without privileges may be unable to read another. */
function apacheConfig(port: number, folder: string): string {
  const script = join(folder, "application.cgi");
  writeFileSync(script, `#!/usr/bin/python3 -SEB\n${readFileSync(join(SOURCES, "wsgi.py"), "utf8")}`);
  chmodSync(script, 0o755);
  const loaded = ["mpm_event", "authz_core", "alias", "cgid"];
  return [
    ...loaded.map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`),
    `Listen 127.0.0.1:${port}`,
    "ServerName localhost",
    "User www-data",
    "Group www-data",
    `PidFile ${folder}/pid`,
    `ErrorLog ${folder}/error.log`,
    `DefaultRuntimeDir ${folder}`,
    `ScriptSock ${folder}/cgi`,
    `KeepAliveTimeout ${KEPT_S}`,
    `ScriptAlias / ${script}/`,
    // It cannot pass on the response of a script that reads nothing of a body.
    '<LocationMatch "/refuse$">',
    "  LimitRequestBody 1000",
    '  ErrorDocument 413 "too large"',
    "</LocationMatch>",
    "",
  ].join("\n");
}

/**
 * Ends the server, with all that it started, when standard input ends: that happens also if the test runner is killed.
 */
const SUPERVISOR = `
setsid "$@" </dev/null & child=$!
echo $child
cat >/dev/null
kill -KILL -$child
wait $child`;

/** A server under test: a group of processes. */
export class Server {
  private shell: ChildProcess | undefined;
  private said = "";

  private constructor(
    readonly name: ServerName,
    private readonly place: Place,
  ) {}

  static async start(name: ServerName): Promise<Server> {
    const folder = mkdtempSync(join(tmpdir(), `portico-upstream-${name}-`));
    // A server that runs as somebody else has to find its files.
    chmodSync(folder, 0o755);
    const server = new Server(name, { port: await freePort(), folder });
    await server.begin();
    return server;
  }

  get port(): number {
    return this.place.port;
  }

  /** Of the process that leads the others. */
  get pid(): number {
    return Number(/^\d+\n/.exec(this.said)![0]);
  }

  /** Starts it, for the first time or again. */
  async begin(): Promise<void> {
    const { command, env } = recipe(this.name);
    this.said = "";
    this.shell = spawn("/bin/sh", ["-c", SUPERVISOR, "sh", ...command(this.place)], {
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1", ...env },
      stdio: ["pipe", "pipe", "pipe"],
    });
    for (const stream of [this.shell.stdout!, this.shell.stderr!])
      stream.on("data", (text: Buffer) => (this.said += text.toString()));
    const accepts = async (): Promise<boolean> => !(await isRefused(this.port));
    await eventually(accepts, `for ${this.name}`, { seen: () => this.said, everyMs: 30 });
  }

  /** Ends it as a loss of power would. */
  async kill(): Promise<void> {
    const { shell } = this;
    this.shell = undefined;
    if (shell === undefined) return;
    const gone = once(shell, "exit");
    shell.stdin!.end();
    await gone;
    // Its children may hold the port a moment longer.
    await eventually(() => isRefused(this.port), `for ${this.name} to be gone`);
  }

  async stop(): Promise<void> {
    await this.kill();
    rmSync(this.place.folder, { recursive: true, force: true });
  }
}
