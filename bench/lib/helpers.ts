import { type ChildProcess } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { start } from "./children.js";

const ROOT = path.resolve(__dirname, "../..");

/** A TypeScript file of `bench/helpers` as a process of its own: what it costs must not count as the proxy's. */
export interface Helper {
  readonly child: ChildProcess;
  /** The next line it prints, parsed as JSON. */
  next(limitMs: number): Promise<Record<string, number>>;
  /** What it has written to standard error so far. */
  errors(): string;
}

/** @param under a command that runs the helper, such as `nice` */
export function startHelper(
  name: string,
  args: readonly (string | number)[],
  cores: string,
  under: readonly string[] = [],
): Helper {
  const file = path.join(ROOT, "bench/helpers", `${name}.ts`);
  const child = start([...under, "node", "--import", "tsx", file, ...args.map(String)], { cores, cwd: ROOT });
  const lines: string[] = [];
  let [pending, errors] = ["", ""];
  child.stdout!.on("data", (chunk: Buffer) => {
    const parts = (pending + chunk.toString()).split("\n");
    pending = parts.pop()!;
    lines.push(...parts);
    child.emit("line");
  });
  child.stderr!.on("data", (chunk: Buffer) => (errors += chunk.toString()));
  child.once("exit", () => child.emit("line"));
  const next = async (limitMs: number): Promise<Record<string, number>> => {
    const signal = AbortSignal.timeout(limitMs);
    while (lines.length === 0) {
      if (child.exitCode !== null || child.signalCode !== null) {
        throw new Error(`bench/helpers/${name}.ts ended early\n${errors}`);
      }
      await once(child, "line", { signal }).catch(() => {
        throw new Error(`bench/helpers/${name}.ts said nothing within ${limitMs / 1000} s\n${errors}`);
      });
    }
    return JSON.parse(lines.shift()!);
  };
  return { child, next, errors: () => errors };
}
