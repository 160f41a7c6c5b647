import { delimiter, join } from "node:path";
import { Predecessor } from "./predecessor.js";
import { loadConfig, type LoadOptions } from "../load/loadConfig.js";
import { acmeDirectory } from "./served/certificateManager.js";
import { Master } from "./master.js";

/** The config to serve, and options of the processes. */
export interface ServeOptions extends LoadOptions {
  /**
   * Called once, when every worker accepts connections.
   * @default - nothing is called
   */
  readonly onReady?: () => void;
  /**
   * Arguments to Node that start a worker.
   * @default - this script with `worker`
   */
  readonly workerCommand?: readonly string[];
  /**
   * Path of the socket that `portico reload` and `portico upgrade` use.
   * @default - in the directory that systemd made for the service (`RuntimeDirectory=`); none without such a directory
   */
  readonly control?: string;
  /**
   * Directory of ACME accounts, keys and certificates; by default the directory that systemd created for the service
   * (`StateDirectory=`). Without a directory no certificate is ordered.
   */
  readonly state?: string;
}

/**
 * Serves a config until a signal stops the process; resolves with the exit code: 0 after a stop, 1 if the start
 * failed.
 *
 * SIGHUP reloads, SIGUSR1 reopens the logs, SIGUSR2 starts the installed runtime, which takes over, SIGTERM, SIGINT
 * and SIGQUIT drain and stop; SIGTERM first waits `timeouts.drainDelayMs`. Each further signal ends the current step:
 * the wait, then the drain. But a second SIGTERM changes nothing for the first process of a container.
 */
export async function serve(options: ServeOptions): Promise<number> {
  const master = new Master({
    control: controlSocket(),
    ...options,
    predecessor: Predecessor.ofThisProcess(),
    load: (expiry, issued) => loadConfig({ ...options, expiry, issued, logs: "warning" }),
    acmeDirectory: acmeDirectory(options.state),
  });
  const signals: Partial<Record<NodeJS.Signals, () => void>> = {
    SIGUSR1: () => master.reopenLogs(),
    SIGUSR2: () => void master.upgrade(),
    SIGHUP: () => void master.reloadOnSignal(),
    SIGTERM: terminate(master),
    SIGINT: () => master.shutDown(),
    SIGQUIT: () => master.shutDown(),
  };
  const entries = Object.entries(signals);
  for (const [signal, listener] of entries) process.on(signal, listener);
  const streams = [process.stdout, process.stderr];
  for (const stream of streams) stream.on("error", ignore);
  process.title = "portico: master";
  try {
    return await master.run();
  } finally {
    for (const [signal, listener] of entries) process.off(signal, listener);
    for (const stream of streams) stream.off("error", ignore);
    // Output without a reader would keep the process running forever.
    if (streams.some(({ writableLength }) => writableLength > 0))
      setTimeout(() => process.exit(), UNREAD_MS).unref();
  }
}

/** How long a process that is done waits for a reader of its last messages. */
const UNREAD_MS = 1_000;

/**
 * A restarted container engine no longer knows which containers it has asked to stop, and asks again. That is not a
 * request for a faster stop: the engine kills a container whose time is over.
 */
function terminate(master: Master): () => void {
  let asked = false;
  return () => {
    if (asked && process.pid === 1) return;
    asked = true;
    master.shutDown({ delayed: true });
  };
}

/** Control socket of a master that systemd started; several directories are separated by colons. */
export function controlSocket(env: NodeJS.ProcessEnv = process.env): string | undefined {
  const [directory] = (env["RUNTIME_DIRECTORY"] ?? "").split(delimiter);
  return directory === undefined || directory === "" ? undefined : join(directory, "control.sock");
}

/** A closed terminal or log pipe must not stop the service. */
const ignore = (): void => undefined;
