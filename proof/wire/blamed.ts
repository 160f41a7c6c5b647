import { type Timeline, readPath } from "./timeline.js";
import { faultsOf } from "./faults.js";

/** What a case broke. */
export interface Failure {
  readonly index: number;
  readonly faults: readonly string[];
}

/** Lines of the error log that a script does not explain: trouble of ours, or somebody blamed who did nothing wrong. */
export function blamed(log: string, caseOf: (index: number) => Timeline | undefined): Failure[] {
  return log.split("\n").flatMap((line): Failure[] => {
    const [, level, message] = /\[(\w+)\] [^:]*: (.*)/.exec(line) ?? [];
    if (level === undefined || message === undefined) return [];
    const id = readPath(/request: "\S+ (\S+) /.exec(line)?.[1] ?? "")?.id;
    const [index, client, exchange] = id?.split(".") ?? [];
    const played = index === undefined ? undefined : caseOf(Number(index));
    const fault = { index: Number(index ?? 0), faults: [`log: ${level}: ${message}`] };
    if (level === "crit" || level === "alert" || level === "emerg") return [fault];
    const script = played?.clients[Number(client)];
    const exchanged = script?.exchanges[Number(exchange)];
    if (played === undefined || script === undefined || exchanged === undefined) return [];
    const faults = faultsOf(played, script, exchanged);
    const blamesClient = /^(?:\*\d+ )?client /.test(message);
    return (blamesClient ? faults.client : faults.upstream || faults.client || faults.busy) ? [] : [fault];
  });
}
