import { createInterface } from "node:readline";
import {
  activate,
  ActivationFailed,
  canDetach,
  deactivate,
  formatPlan,
  lastingPrograms,
  recoverHost,
  runDetached,
  seeDrift,
} from "../../src/host/activation/index.js";
import { run } from "../../src/cli/program.js";
import { ProblemError } from "../../src/model/index.js";

/**
 * What runs inside a `WholeHost`: a call as a line of JSON on standard input, and its outcome as a line on standard output.
 * With arguments it is the command line.
 */

interface Call {
  readonly what: keyof typeof CALLS;
  readonly options?: never;
  /** Variables of the environment during the call. */
  readonly env?: Readonly<Record<string, string>>;
  /** The user that it is called as instead of root. */
  readonly uid?: number;
}

let lines: string[] = [];
const report = (line: string): void => void lines.push(line);
let controller = new AbortController();
const ROOT = { root: "/", lockSeconds: 5, report };

/** How often this process has parsed a config: no other text that it reads has virtual servers. */
let parses = 0;
const { parse } = JSON;
JSON.parse = (text: string, reviver?: Parameters<typeof parse>[1]): unknown => {
  if (text.includes('"virtualServers":')) parses++;
  return parse(text, reviver);
};

const CALLS = {
  parses: () => Promise.resolve(parses),
  activate: async (options: object) => {
    const { plan, responses } = await activate({
      ...ROOT,
      dryRun: false,
      signal: controller.signal,
      ...options,
    });
    return { plan: formatPlan(plan), warnings: plan.warnings, responses };
  },
  deactivate: (options: object) => deactivate({ ...ROOT, purge: false, ...options }),
  recover: () => recoverHost(ROOT),
  drift: () => seeDrift(),
  canDetach: (root: string) => Promise.resolve(canDetach(root)),
  lastingPrograms: () => lastingPrograms(),
  /** The command line, in this process. */
  cli: async (args: string[]) => {
    let [out, err] = ["", ""];
    process.argv.splice(2, Infinity, ...args);
    const code = await run(args, { out: (text) => void (out += text), err: (text) => void (err += text) });
    process.argv.length = 2;
    return { code, out, err };
  },
  detached: ({ program, args }: { program: string; args: string[] }) => {
    const streams = { out: (text: string) => report(`out: ${text}`), err: (text: string) => report(text) };
    return runDetached([process.execPath, program], args, streams);
  },
};

// A call may end the process: then this is all that is known of it.
process.on("exit", () => {
  if (lines.length > 0) process.stdout.write(`${JSON.stringify({ lines })}\n`);
});
process.on("SIGTERM", () => controller.abort("SIGTERM"));

async function respond({ what, options, env = {}, uid }: Call): Promise<object> {
  lines = [];
  controller = new AbortController();
  const before = { ...process.env };
  Object.assign(process.env, env);
  if (uid !== undefined) process.seteuid!(uid);
  try {
    const value = await CALLS[what](options ?? ({} as never));
    return { value, lines };
  } catch (error) {
    if (error instanceof ActivationFailed)
      return { reason: error.reason, notRestored: error.notRestored, lines };
    if (error instanceof ProblemError) return { problems: error.problems, lines };
    return { threw: (error as Error).stack, lines };
  } finally {
    if (uid !== undefined) process.seteuid!(0);
    process.env = before;
  }
}

let last = Promise.resolve();
if (process.argv.length > 2) void import("../../src/cli/main.js");
else
  createInterface(process.stdin).on("line", (line) => {
    last = last.then(async () => {
      process.stdout.write(`${JSON.stringify(await respond(JSON.parse(line) as Call))}\n`);
      lines = [];
    });
  });
