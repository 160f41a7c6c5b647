import { lstat, readdir, realpath } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { type Deployment, parseConfigText, type ProxyConfig } from "../model/index.js";
import { readText } from "../runtime/fileAccess.js";
import { removeFile, removeIfEmpty } from "./durableFiles.js";
import type { Store } from "./store.js";

/** Files that the proxy of a deployment logs to, as paths of the host. */
export async function logsOf(store: Store, deployment: Deployment): Promise<readonly string[]> {
  const file = store.onHost(deployment.config);
  const read = await readText(file, file);
  const parsed = "text" in read ? parseConfigText(read.text) : undefined;
  return parsed?.ok === true ? logsIn(parsed.value) : [];
}

/** Removes logs, rotated ones too, and their directories where nothing else is in them. @returns what was removed */
export async function removeLogs(store: Store, logs: readonly string[]): Promise<string[]> {
  const removed: string[] = [];
  for (const log of logs) removed.push(...(await removeLog(store.onHost(log))));
  for (const directory of new Set(logs.map((log) => dirname(store.onHost(log))))) {
    await removeDirectory(directory);
  }
  return removed;
}

function logsIn(config: ProxyConfig): string[] {
  const routes = config.virtualServers.flatMap((server) => server.routes);
  const all = [
    config.logs.access,
    config.logs.error,
    ...routes.flatMap(({ accessLog, errorLog }) => [accessLog ?? "off", errorLog ?? "off"] as const),
  ];
  return [...new Set(all.flatMap((log) => (log === "off" ? [] : [log.path])))];
}

/** The log and what rotation made of it: `access.log.1`, `access.log-20260101.gz`. */
async function removeLog(log: string): Promise<string[]> {
  const names = await readdir(dirname(log)).catch(() => []);
  const name = basename(log);
  const own = names.filter(
    (n) => n === name || /^[.-]\d[\d.-]*(?:\.(?:gz|xz|zst|bz2))?$/.test(n.slice(name.length)),
  );
  const paths = own.filter((n) => n.startsWith(name)).map((n) => join(dirname(log), n));
  for (const path of paths) await removeFile(path);
  return paths;
}

/** With `DynamicUser=` systemd makes the directory in `private/` and a link to it. */
async function removeDirectory(directory: string): Promise<void> {
  const found = await lstat(directory).catch(() => undefined);
  if (found === undefined) return;
  if (!found.isSymbolicLink()) return void (await removeIfEmpty(directory));
  const target = await realpath(directory).catch(() => undefined);
  if (target === undefined || (await removeIfEmpty(target))) await removeFile(directory);
}
