import { mkdtemp, rm } from "node:fs/promises";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import { createFileServer } from "./fileServer.js";
import { createWebdav } from "./webdav.js";
import { createWebUi, type SitePaths } from "./webUi.js";

export type DaemonName = "web" | "fileServer" | "webdav";

export interface RunningDaemon {
  readonly name: DaemonName;
  readonly port: number;
  /** The port it should have had; another program has it if this differs. */
  readonly wantedPort: number;
}

export interface Upstreams {
  readonly daemons: readonly RunningDaemon[];
  /** Closes every connection and removes what was uploaded. */
  stop(): Promise<void>;
}

/**
 * Starts the three daemons behind the front end (service 1.2) on loopback; on a free port where the usual one is taken.
 */
export async function startUpstreams(
  paths: SitePaths,
  ports: Readonly<Record<DaemonName, number>>,
): Promise<Upstreams> {
  const folder = await mkdtemp(path.join(os.tmpdir(), "portico-demo-"));
  const servers: Record<DaemonName, Server> = {
    web: createWebUi(paths),
    fileServer: await createFileServer(path.join(folder, "files")),
    webdav: await createWebdav(paths.webdav, path.join(folder, "dav")),
  };
  const stop = async (): Promise<void> => {
    await Promise.all(Object.values(servers).map(close));
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const daemons: RunningDaemon[] = [];
    for (const name of Object.keys(servers) as DaemonName[]) {
      const wantedPort = ports[name];
      daemons.push({ name, port: await listen(servers[name], wantedPort), wantedPort });
    }
    return { daemons, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function listen(server: Server, port: number): Promise<number> {
  try {
    return await listenOn(server, port);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EADDRINUSE" && code !== "EACCES") throw error;
    return listenOn(server, 0);
  }
}

function listenOn(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => {
      server.off("error", reject);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
