import { originOf, Replay } from "../diagnosis/replay/replay.js";
import { readInto } from "../diagnosis/replay/replayFile.js";
import { replayText } from "../diagnosis/replay/replayText.js";
import { type Problem, problem, ProblemError, type ProxyConfig } from "../../model/index.js";
import { configHash, type Delivered } from "./delivered.js";
import { configAt, valueIn } from "./loaded.js";
import type { Report } from "./report.js";
import type { GoodState, Store } from "./store.js";

/**
 * Runs the requests of an access log through the config of the last good state and the one that would replace it, if the
 * deployment asks for it. Changes nothing.
 *
 * @returns why nothing could be replayed, as warnings: a missing log is not a reason to refuse
 * @throws ProblemError if more requests than allowed would be treated differently; examples are reported before
 */
export async function replayGate(
  store: Store,
  { deployment, config: next }: Delivered,
  last: GoodState | undefined,
  installed: ProxyConfig | undefined,
  report: Report,
): Promise<readonly Problem[]> {
  const { replay } = deployment;
  const [before, after] = [last?.deployment, deployment].map((one) => one && configHash(one));
  // Nothing was served before, or the same will be.
  if (replay === undefined || before === undefined || before === after) return [];
  // The installed file may have been changed since.
  const old = valueIn(await configAt(store.blob(before))) ?? installed;
  if (old === undefined || next === undefined)
    return [notReplayed(deployment.config, "the config in force cannot be read")];
  const { access } = old.logs;
  const log = replay.accessLog ?? (typeof access === "object" && "path" in access ? access.path : undefined);
  if (log === undefined) return [notReplayed("logs.access", "the config in force logs to no file")];
  const origin = originOf(old, { host: replay.host });
  // If each line names its host, no choice is needed.
  const assumed = "names" in origin ? { scheme: "https" as const, host: origin.names[0]! } : origin;
  const run = new Replay({ before: old, after: next, origin: assumed, secrets: false });
  const end = { bytesMax: replay.logBytesMax, links: false };
  const counted = await readInto(run, store.onHost(log), "names" in origin, end);
  if (counted.failure !== undefined) return [notReplayed(log, counted.failure.message)];
  if (counted.hostMissing === true) {
    const fix = "Set `host` of `replay`, or write the log in JSON, which contains the hosts.";
    return [notReplayed(log, "its lines do not name hosts, but the config has several", fix)];
  }
  if (counted.requests === 0) return [notReplayed(log, "it contains no request")];
  if (run.changed <= replay.changesMax) return [];
  const shown = {
    before: "the config in force",
    after: "the new config",
    files: [counted],
    run,
    problems: [],
  };
  for (const line of replayText(shown).trimEnd().split("\n")) report(line);
  throw new ProblemError([
    problem(
      "activation.replay-changes",
      log,
      "contains requests that the new config would treat differently",
      {
        received: `${run.changed} of ${run.requests} requests`,
        allowed: `up to ${replay.changesMax} requests`,
      },
    ),
  ]);
}

const notReplayed = (log: string, why: string, fix?: string): Problem =>
  problem("activation.not-replayed", log, `was not replayed: ${why}`, fix === undefined ? {} : { fix });
