import type { Problem } from "../../model/index.js";
import type { Evidence, SeenResponse } from "./evidence.js";
import type { ReceivedResponse } from "./expected/expectation.js";

/** The result of one row of a diagnosis. */
export interface DiagnosisRow {
  readonly id: string;
  readonly title: string;
  /** Absent in rows about the host. */
  readonly site?: string;
  /**
   * `warning`: it works, and needs something done in time. `explained`: the symptom is there, and another row, which
   * failed, is its cause. `unknown`: it could not be checked from here.
   */
  readonly status: "ok" | "warning" | "failed" | "explained" | "unknown";
  /** The cause of a failure, in the words of service 6, or the subject of a warning. */
  readonly cause?: string;
  /** The observed facts. */
  readonly evidence: readonly string[];
  readonly fix?: string;
  /** Id of the row that explains this one. */
  readonly because?: string;
  /** Whether an `unknown` row was not asked, because nobody asked for it here; if it was, there was no answer. */
  readonly notAsked?: true;
}

export type Verdict = Pick<DiagnosisRow, "status" | "cause" | "evidence" | "fix" | "because" | "notAsked">;

export const ok = (...evidence: string[]): Verdict => ({ status: "ok", evidence });
export const unknown = (why: string): Verdict => ({ status: "unknown", evidence: [why] });
/** It cannot be seen from this place, or only with an option; that says nothing about the host. */
export const notAsked = (why: string): Verdict => ({ ...unknown(why), notAsked: true });
export const failure = (cause: string, evidence: readonly string[], fix: string): Verdict => ({
  status: "failed",
  cause,
  evidence,
  fix,
});

export const warning = (cause: string, evidence: readonly string[], fix: string): Verdict => ({
  ...failure(cause, evidence, fix),
  status: "warning",
});

export const explained = (because: string, ...evidence: string[]): Verdict => ({
  status: "explained",
  because,
  evidence,
});

/** A question of the diagnosis. The questions before it have a verdict: `failed` contains the ids of those that failed. */
export interface Question<Id extends string = string> {
  readonly id: Id;
  readonly title: string;
  readonly site?: string | undefined;
  ask(evidence: Evidence, failed: ReadonlySet<string>): Verdict;
}

/** Why something could not be checked. */
export function notSeen({ place, deployment }: Evidence, what: string): Verdict {
  if (place === "elsewhere")
    return notAsked(`${what} can only be seen on the host: run \`portico doctor\` there.`);
  if (place === "folder") return notAsked(`${what} can only be seen where the files are in use.`);
  return deployment === undefined
    ? notAsked(`${what} cannot be determined: there is no deployment document.`)
    : unknown(`${what} could not be determined: the host gave no answer, or this needs root.`);
}

/** A problem as evidence. */
export const short = ({ path, message }: Problem): string => (path === "" ? message : `${path}: ${message}`);

/** Rows that keep the proxy from responding at all. */
export const OUTAGES = ["config", "proxy", "addresses", "ports"];

/** The verdict that the proxy does not respond, if a row so far says why. */
export function outage({ responses }: Evidence, failed: ReadonlySet<string>): Verdict | undefined {
  const cause = OUTAGES.find((id) => failed.has(id));
  const silent = responses.some(({ outcome }) => outcome !== undefined && "failure" in outcome);
  return cause !== undefined && silent ? explained(cause, "The proxy does not respond.") : undefined;
}

/** Whether processes that were stopped keep requests waiting. */
export const isStalled = ({ drift }: Evidence): boolean => drift?.units.some(({ stalls }) => stalls) === true;

/** Whether other programs have ports of the proxy: then responses are theirs. */
export const hasStrangers = ({ processes }: Evidence): boolean => (processes?.strangers.length ?? 0) > 0;

/** Responses that came; with a code, those of requests that a cause with it is known of. */
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

/** Responses that have the cause of a row. */
export const failedBy = (evidence: Evidence, code: string) =>
  responsesOf(evidence, code).filter(({ checked }) => !checked.pass && checked.code === code);

export const describe = ({ checked }: SeenResponse): string => `${checked.request}: ${checked.seen}`;
