import { existsSync } from "node:fs";
import { link, realpath, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Deployment, DEPLOYMENT_STORE, type FileRole } from "../../model/index.js";
import { currentUser, makeDirectory, placeCopy } from "./durableFiles.js";

/** The programs that run portico: Node, and the runtime. */
export type Programs = readonly [node: string, runtime: string];

/** The programs of this process. */
export const runningPrograms = (): Programs => [process.execPath, process.argv[1]!];

/** The programs that a deployment has installed; if it contains none, those that are running. */
export function programsOf({ files }: Deployment): Programs {
  const [node, runtime] = runningPrograms();
  const installed = (role: FileRole): string | undefined => files.find((file) => file.role === role)?.path;
  return [installed("node") ?? node, installed("runtime") ?? runtime];
}

const LASTING_PROGRAMS = join(DEPLOYMENT_STORE, "run");

/**
 * The programs of this process, at paths that a deactivation leaves alone: a deactivation removes the installed programs,
 * and could not be continued without a copy after a kill or a power failure.
 */
export async function lastingPrograms(): Promise<Programs> {
  const running = runningPrograms();
  const last = running.every((path) => path.startsWith(`${dirname(DEPLOYMENT_STORE)}/`));
  if (last || !existsSync(DEPLOYMENT_STORE)) return running;
  try {
    await makeDirectory(LASTING_PROGRAMS, "0700");
    const [node, runtime] = running;
    return [await keep(node, "node"), await keep(runtime, "portico.mjs")];
  } catch {
    // The disk may have no space for the copies: the deactivation continues without them.
    return running;
  }
}

async function keep(program: string, name: string): Promise<string> {
  const [source, path] = [await realpath(program), join(LASTING_PROGRAMS, name)];
  await rm(path, { force: true });
  await link(source, path).catch(() => placeCopy(source, path, { mode: "0700", ...currentUser() }));
  return path;
}
