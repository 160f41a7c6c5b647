import { lstat, readdir, realpath, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { type Deployment, parseConfigText, type ProxyConfig } from "../model/index.js";
import { readText } from "../runtime/fileAccess.js";
import { removeIfEmpty } from "./durableFiles.js";
import type { Store } from "./store.js";

/**
 * What removes the proxy's logs, rotated ones too, once the proxy has stopped; the config that names them is read now.
 * The function returned tells what it removed.
 */
export async function purgeLogs(store: Store, deployment: Deployment): Promise<() => Promise<string[]>> {
  const file = store.onHost(deployment.config);
  const read = await readText(file, file);
  const parsed = "text" in read ? parseConfigText(read.text) : undefined;
  const logs = parsed?.ok === true ? logsOf(parsed.value) : [];
  return async () => {
    const removed: string[] = [];
    for (const log of logs) removed.push(...(await removeLog(store.onHost(log))));
    for (const directory of new Set(logs.map((log) => dirname(store.onHost(log))))) {
      await removeDirectory(directory);
    }
    return removed;
  };
}

function logsOf(config: ProxyConfig): string[] {
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
  for (const path of paths) await rm(path, { force: true });
  return paths;
}

/** With `DynamicUser=` systemd makes the directory in `private/` and a link to it. */
async function removeDirectory(directory: string): Promise<void> {
  const found = await lstat(directory).catch(() => undefined);
  if (found === undefined) return;
  if (!found.isSymbolicLink()) return void (await removeIfEmpty(directory));
  if (await removeIfEmpty(await realpath(directory).catch(() => directory))) await rm(directory);
}
