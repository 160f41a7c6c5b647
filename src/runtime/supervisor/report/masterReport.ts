import { formatProblem, type Problem, problemTitle, type ProxyConfig } from "../../../model/serving.js";
import { workerCount } from "./allowance.js";
import { keyOf } from "../../listen/sockets.js";

/** Texts of the master about its own state. */

/** `http://0.0.0.0:80 https://0.0.0.0:443, 2 workers` */
export function servingText(config: ProxyConfig): string {
  const number = workerCount(config);
  return `${endpoints(config)}, ${number} worker${number === 1 ? "" : "s"}`;
}

export interface Status {
  readonly config: ProxyConfig;
  readonly generation: number;
  /** How many older generations and masters are still finishing requests. */
  readonly finishing: number;
  /** The last failure. */
  readonly lastFailure: string | undefined;
}

/** The line that `systemctl status` shows. */
export function statusText({ config, generation, finishing, lastFailure }: Status): string {
  const older = finishing === 0 ? "" : `, ${finishing} older finishing`;
  const last = lastFailure === undefined ? "" : `; last ${lastFailure}`;
  return `Serving ${servingText(config)}, generation ${generation}${older}${last}`;
}

/** Every problem with its received and allowed values and its fix. */
export function problemsText(problems: readonly Problem[]): string {
  return problems.map((p) => `${formatProblem(p)}\n`).join("");
}

/** A problem in a single line, for a log. */
export function problemLine(p: Problem): string {
  return `${problemTitle(p)}; ${p.fix}`;
}

export function problemCount(problems: readonly Problem[]): string {
  return problems.length === 1 ? "1 problem" : `${problems.length} problems`;
}

/** Output may be closed, as when a terminal goes away, or have no reader; serving does not depend on it. */
export function write(stream: NodeJS.WriteStream, text: string): void {
  if (stream.writableLength < UNREAD_BYTES_MAX) stream.write(text, () => undefined);
}

const UNREAD_BYTES_MAX = 1024 * 1024;

function endpoints(config: ProxyConfig): string {
  return config.listeners.map((l) => `${l.protocol}://${keyOf(l.address, l.port)}`).join(" ");
}
