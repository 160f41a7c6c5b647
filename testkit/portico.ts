import { type ChildProcess, spawn } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { threadsAsText } from "../build/bundle.js";
import type { ProxyConfigInput } from "../src/model/index.js";
import { WITHOUT } from "../src/runtime/sockets/node/pieces.js";
import { sharedFile } from "./sharedFile.js";
import { eventually } from "./waiting.js";
import { publicFolder } from "./publicFolder.js";

/** The runtime as users run it, in processes of its own. */

const folders: string[] = [];

afterAll(() => {
  killAll();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/**
 * What masters load, and what workers do, without the command line around them. They are files of their own, because
 * Node reads all of a file for the part of it that runs: that is a tenth of what a start costs.
 */
const PARTS = { master: "porticoEntry.ts", worker: "porticoWorkerEntry.ts" } as const;

function part(name: keyof typeof PARTS): Promise<string> {
  return sharedFile(`${name}.js`, (outfile) =>
    build({
      entryPoints: [join(__dirname, PARTS[name])],
      bundle: true,
      platform: "node",
      format: "cjs",
      plugins: [threadsAsText([])],
      outfile,
    }),
  );
}

/** The same part if nothing is edited, and the same file for the same text. */
async function editedPart(name: keyof typeof PARTS, edit: (code: string) => string): Promise<string> {
  const file = await part(name);
  const code = readFileSync(file, "utf8");
  const edited = edit(code);
  if (edited === code) return file;
  const digest = createHash("sha256").update(edited).digest("hex");
  return sharedFile(`${name}-${digest}.js`, (own) => writeFileSync(own, edited));
}

/** The script that is run, as text. */
async function script(edit?: (code: string) => string): Promise<string> {
  const [master, worker] = await Promise.all(
    (["master", "worker"] as const).map((name) => (edit === undefined ? part(name) : editedPart(name, edit))),
  );
  const run = JSON.stringify(join(__dirname, "compiledOnce.js"));
  return `require(${run})(process.argv[2] === "worker" ? ${JSON.stringify(worker)} : ${JSON.stringify(master)});\n`;
}

/** One script with serve, worker and check. */
const bundled = (): Promise<string> =>
  sharedFile("portico.js", async (file) => writeFileSync(file, await script()));

/** A folder that any user may look into, removed when the tests are over. */
export function openFolder(): string {
  const folder = publicFolder("portico-life-");
  folders.push(folder);
  return folder;
}

/** A copy of the runtime under test at a path of its own, as an installed one has; edited, it is another release. */
export async function installedRuntime(edit?: (code: string) => string): Promise<string> {
  const file = join(openFolder(), "portico.js");
  writeFileSync(file, await script(edit));
  return file;
}

export interface StartOptions {
  readonly env?: NodeJS.ProcessEnv;
  /** Script to run; default: the runtime under test. */
  readonly runtime?: string;
  /** Descriptors that are passed as systemd does, with their names. */
  readonly sockets?: readonly { readonly fd: number; readonly name: string }[];
  /** A shell command that runs before, as `ulimit -n 64`. */
  readonly before?: string;
}

/** A master process under test. */
export class Portico {
  output = "";
  errors = "";
  ended = false;
  /** Exit code; null before the end, and after one by a signal. */
  code: number | null = null;
  readonly gone: Promise<void>;

  private constructor(
    private readonly child: ChildProcess,
    readonly configFile: string,
  ) {
    child.stdout!.on("data", (text: Buffer) => (this.output += text.toString()));
    child.stderr!.on("data", (text: Buffer) => (this.errors += text.toString().replace(SWITCHED_OFF, "")));
    this.gone = once(child, "close").then(([code]) => {
      this.code = code as number | null;
      this.ended = true;
    });
    running.add(this);
    void this.gone.then(() => running.delete(this));
  }

  /** Starts a master and waits until it is ready, or gone. */
  static async start(config: ProxyConfigInput | string, options: StartOptions = {}): Promise<Portico> {
    const file = join(openFolder(), "portico.json");
    writeConfig(file, config);
    const { sockets = [], before = ":" } = options;
    const listen = `export LISTEN_PID=$$ LISTEN_FDS=${sockets.length} LISTEN_FDNAMES=${sockets.map((s) => s.name).join(":")}`;
    const script = `${before}; ${sockets.length === 0 ? ":" : listen}; exec "$0" "$@"`;
    const child = spawn(
      "sh",
      ["-c", script, process.execPath, options.runtime ?? (await bundled()), "serve", file],
      {
        stdio: ["ignore", "pipe", "pipe", ...sockets.map(({ fd }) => fd)],
        env: { ...process.env, ...options.env, [MARK]: mark },
      },
    );
    const portico = new Portico(child, file);
    await eventually(() => portico.ended || portico.output.includes(" ready: "), "for it to be ready", {
      seen: () => portico.errors,
    });
    return portico;
  }

  get pid(): number {
    return this.child.pid!;
  }

  signal(name: NodeJS.Signals): void {
    this.child.kill(name);
  }

  /** Whether anybody reads its standard output and error, which are sockets. */
  readOutput(isRead: boolean): void {
    for (const stream of [this.child.stdout!, this.child.stderr!]) {
      if (isRead) stream.resume();
      else stream.pause();
    }
  }

  rewrite(config: ProxyConfigInput | string): void {
    writeConfig(this.configFile, config);
  }

  /** Process ids of the workers that run now. */
  workers(): number[] {
    return workersOf(this.pid);
  }

  /** Resolves when it has written something that matches, on either stream. */
  async says(words: RegExp): Promise<void> {
    const said = (): string => this.output + this.errors;
    let seen = -1;
    const message = (): boolean => {
      const length = this.output.length + this.errors.length;
      // Some tests have megabytes of it.
      if (length === seen) return false;
      seen = length;
      return words.test(said());
    };
    await eventually(message, `to say ${words}`, { seen: said });
  }

  /** SIGTERM, and the exit code. */
  async stop(): Promise<number | null> {
    if (!this.ended) this.signal("SIGTERM");
    await this.gone;
    return this.code;
  }
}

const running = new Set<Portico>();

/** What a start says where the tests run without pieces of Node (`npm run node-versions`): no test waits for it. */
const SWITCHED_OFF =
  process.env[WITHOUT] === undefined ? /^$/ : new RegExp(`^portico: ${WITHOUT} switches off .*\n`, "m");

/** Marks every process that this test file started, and what these start. */
const MARK = "PORTICO_TEST_MARK";
const mark = randomUUID();

/** For whoever waits for {@link processes}: each look is at all that this machine runs. */
export const SELDOM = { everyMs: 30 };

/** Every process of this test file, whoever its parent is by now; one that just began is neither master nor worker. */
export function processes(kind: "master" | "worker" | "other"): number[] {
  return marked().filter((pid) => {
    const [, title = "other"] = /^portico: (\w+)/.exec(readProc(pid, "cmdline")) ?? [];
    return title === kind;
  });
}

/** Workers of one master. */
export function workersOf(master: number): number[] {
  return readProc(master, `task/${master}/children`).trim().split(" ").filter(Boolean).map(Number);
}

/** Ends what a test left running. */
export function killAll(): void {
  for (const pid of marked()) kill(pid);
}

/** Processes that were there before this test file and still are: a look at each of them, at every turn, is dear. */
const strangers = new Set(allProcesses());

function marked(): number[] {
  const all = new Set(allProcesses());
  // The number of one that is gone may be given to a process of this file.
  for (const pid of strangers) if (!all.has(pid)) strangers.delete(pid);
  return [...all].filter(
    (pid) => !strangers.has(pid) && readProc(pid, "environ").includes(`${MARK}=${mark}`) && alive(pid),
  );
}

function allProcesses(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

function readProc(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, "latin1");
  } catch {
    return "";
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It is gone already.
  }
}

function writeConfig(file: string, config: ProxyConfigInput | string): void {
  writeFileSync(file, typeof config === "string" ? config : JSON.stringify(config));
}

/** What a check finds, seen by a user without privileges. */
export async function checkAsNobody(file: string, env: NodeJS.ProcessEnv = {}): Promise<string> {
  const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  const child = spawn(process.execPath, [await bundled(), "check", file], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ...env },
    ...user,
  });
  let text = "";
  child.stdout!.on("data", (chunk: Buffer) => (text += chunk.toString()));
  await once(child, "close");
  return text;
}

/** Who may do nothing that is not allowed to everyone. */
export const NOBODY = 65_534;

/** True while a process exists and is not a zombie. */
export function alive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}
