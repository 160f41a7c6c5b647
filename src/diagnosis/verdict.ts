/** What became of one row of a diagnosis. */
export interface DiagnosisRow {
  readonly id: string;
  /** Section of the spec. */
  readonly spec: string;
  readonly title: string;
  /**
   * `explained`: the symptom is there, and another row, which failed, is its cause. `unknown`: it could not be looked
   * at from here.
   */
  readonly status: "ok" | "failed" | "explained" | "unknown";
  /** Why it failed, in the spec's words. */
  readonly cause?: string;
  /** What was seen. */
  readonly evidence: readonly string[];
  readonly fix?: string;
  /** Id of the row that explains this one. */
  readonly because?: string;
}

export type Verdict = Pick<DiagnosisRow, "status" | "cause" | "evidence" | "fix" | "because">;

export const ok = (...evidence: string[]): Verdict => ({ status: "ok", evidence });
export const unknown = (why: string): Verdict => ({ status: "unknown", evidence: [why] });
export const failure = (cause: string, evidence: readonly string[], fix: string): Verdict => ({
  status: "failed",
  cause,
  evidence,
  fix,
});

export const explained = (because: string, ...evidence: string[]): Verdict => ({
  status: "explained",
  because,
  evidence,
});
