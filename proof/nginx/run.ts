import { ALL, type Channel, HTTP1 } from "../wire/case.js";
import { isSteps, perform } from "../wire/perform.js";
import type { Performer } from "../wire/stage.js";
import { methodOf } from "../wire/talk.js";
import type { Case } from "./deviations.js";
import { type Facts, factsOf } from "./facts.js";

export interface Observed {
  readonly facts: Facts;
  /** The response as it came, for reports. */
  readonly raw: string;
}

/** Channels that a case is run over. */
export function channelsOf(row: Case): readonly Channel[] {
  return row.over ?? (isSteps(row.send) ? HTTP1 : ALL);
}

/** Runs a case against one proxy. */
export async function observe(row: Case, channel: Channel, subject: Performer): Promise<Observed> {
  const { result, requests } = await perform(row, channel, subject);
  const method = isSteps(row.send) ? methodOf(row.send) : (row.send.method ?? "GET");
  return { facts: factsOf(result, requests, subject.ports, method), raw: result.raw };
}
