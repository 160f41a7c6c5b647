import { endpoint, urlAuthority } from "../../../model/index.js";
import { Queue } from "../../../runtime/queue.js";
import { seeBehind } from "./behind.js";
import { causeOfResponse, causeOfFailure } from "./causes.js";
import type { ReceivedResponse } from "./expectation.js";
import type { ExpectedProbe } from "./expectedResponses.js";
import { isElsewhere } from "../system/hostFacts.js";
import { probe, type ProbeOptions, type ProbeOutcome } from "./probe.js";

/** A row of the table of expected responses with its result. */
export interface CheckedResponse {
  readonly name: string;
  /** Site of the virtual server. */
  readonly site?: string;
  readonly pass: boolean;
  /** There was no request, because no file was found for it. */
  readonly notProbed?: true;
  /** It was the same before the activation, which did not cause it. */
  readonly asBefore?: true;
  /** `METHOD URL`, and where it was sent if that is not the URL's host. */
  readonly request: string;
  readonly expected: string;
  readonly seen: string;
  /** Likely cause of a failure, and where to look. */
  readonly cause?: string;
  /** The fix, if the cause has one. */
  readonly fix?: string;
  /** Row of `portico doctor` that the cause makes fail, and those that explain it. */
  readonly code?: string;
  readonly because?: readonly string[];
  /** Settings of the application that the response shows to be missing or wrong; none if the cause is something else. */
  readonly settings?: readonly string[];
}

/** Requests in progress at a time: a deployment may list hundreds. */
const AT_ONCE = 16;

/** Sends every row's request and compares. Rows come back in their order. */
export async function checkLive(
  rows: readonly ExpectedProbe[],
  options: ProbeOptions,
): Promise<CheckedResponse[]> {
  return (await askRows(rows, options)).map(({ row, outcome }) => judge(row, outcome));
}

/** Sends every row's request. */
export async function askRows(
  rows: readonly ExpectedProbe[],
  options: ProbeOptions,
): Promise<{ readonly row: ExpectedProbe; readonly outcome: ProbeOutcome | undefined }[]> {
  const queue = new Queue(AT_ONCE);
  return Promise.all(
    rows.map(async (row) => {
      const { request, notProbed } = row;
      const asked =
        notProbed === undefined ? queue.do(async () => seen(row, await probe(request, options))) : undefined;
      return { row, outcome: await asked };
    }),
  );
}

/** Adds what a look at a row's servers or directory shows, where they are this machine's and the response is not expected. */
async function seen(row: ExpectedProbe, outcome: ProbeOutcome): Promise<ProbeOutcome> {
  if ("failure" in outcome || isElsewhere(row.request.address) || isAsExpected(row, outcome.response))
    return outcome;
  const behind = await seeBehind(row, outcome.response);
  return behind === undefined ? outcome : { ...outcome, behind };
}

const isAsExpected = ({ expected }: ExpectedProbe, response: ReceivedResponse): boolean =>
  expected.every((one) => one.holds(response));

/** Compares one outcome with its row; undefined for a request that was not made. */
export function judge(row: ExpectedProbe, outcome: ProbeOutcome | undefined): CheckedResponse {
  const base = {
    name: row.name,
    site: row.site,
    request: describe(row),
    expected: row.expected.map((e) => e.message).join(", "),
  };
  if (outcome === undefined) {
    const { reason, fix } = row.notProbed!;
    return { ...base, pass: false, notProbed: true, seen: "not probed", cause: `${reason}: ${fix}` };
  }
  if ("failure" in outcome) {
    return {
      ...base,
      pass: false,
      seen: outcome.failure.message,
      cause: causeOfFailure(row, outcome.failure),
    };
  }
  const { response, behind } = outcome;
  const found = { ...base, seen: row.expected.map((e) => e.seen(response)).join(", ") };
  if (isAsExpected(row, response)) return { ...found, pass: true };
  const { message: cause, evidence: _, ...more } = causeOfResponse(row, response, behind);
  return { ...found, pass: false, cause, ...more };
}

/** A line for a person: result, request, expected and actual response, and the cause of a failure. */
export function formatChecked(row: CheckedResponse): string {
  const line = `${row.pass ? "PASS" : "FAIL"}  ${row.name}: ${row.request} | expected ${row.expected} | seen ${row.seen}`;
  const known = row.asBefore === true ? `${line} | the same before the activation` : line;
  return row.cause === undefined ? known : `${known} | cause: ${row.cause}`;
}

function describe(row: ExpectedProbe): string {
  const { scheme, host, path, address, port, method = "HEAD" } = row.request;
  const url = `${method} ${scheme}://${host}${path}`;
  const asked = urlAuthority(scheme, address, port);
  return asked === host ? url : `${url} (at ${endpoint({ host: address, port })})`;
}
