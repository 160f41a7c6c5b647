import type { Evidence, SeenResponse } from "./evidence.js";
import type { ReceivedResponse } from "./expectation.js";
import { explained, type Verdict } from "./verdict.js";

/** Rows that keep the proxy from answering at all. */
export const OUTAGES = ["config", "proxy", "addresses", "ports"];

/** That the proxy does not answer, if one of the rows so far says why. */
export function outage({ responses }: Evidence, failed: ReadonlySet<string>): Verdict | undefined {
  const cause = OUTAGES.find((id) => failed.has(id));
  const silent = responses.some(({ outcome }) => outcome !== undefined && "failure" in outcome);
  return cause !== undefined && silent ? explained(cause, "The proxy does not answer.") : undefined;
}

/** Answers that came; with a code, those of requests that a cause with it is known of. */
export function responsesOf(
  { responses }: Evidence,
  code?: string,
): (SeenResponse & { response: ReceivedResponse })[] {
  return responses.flatMap((seen) =>
    seen.outcome !== undefined &&
    "response" in seen.outcome &&
    (code === undefined || seen.row.causes.some((cause) => cause.code === code))
      ? [{ ...seen, response: seen.outcome.response }]
      : [],
  );
}

/** Answers that have the cause of a row. */
export const failedBy = (evidence: Evidence, code: string) =>
  responsesOf(evidence, code).filter(({ checked }) => !checked.pass && checked.code === code);

export const describe = ({ checked }: SeenResponse): string => `${checked.request}: ${checked.seen}`;
