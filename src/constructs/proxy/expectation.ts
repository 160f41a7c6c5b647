import type { IConstruct } from "constructs";
import type {
  expectation,
  expectedCause,
  expectedEvidence,
  expectedField,
  expectedLocation,
  expectedMember,
} from "../../model/host/expect.js";
import type { InputOf } from "../../model/schema/inferred.js";
import { expectationProblems } from "../../model/config/parse.js";
import type { Problem } from "../../model/index.js";
import { checkAroundTokens } from "../props/tokens.js";

/**
 * A request that changes nothing, and the expected response of a route or a virtual server. Without fields of the
 * response, the default of the route's action applies.
 */
export interface ExpectedResponse extends InputOf<typeof expectation> {
  readonly location?: string | ExpectedLocation | readonly string[];
  readonly fields?: readonly ExpectedField[];
  readonly members?: readonly ExpectedMember[];
  readonly causes?: readonly ExpectedCause[];
}

export interface ExpectedLocation extends InputOf<typeof expectedLocation> {}

export interface ExpectedField extends InputOf<typeof expectedField> {}

/** A member of a JSON object in the body. */
export interface ExpectedMember extends InputOf<typeof expectedMember> {}

/** A cause of an unexpected response. */
export interface ExpectedCause extends InputOf<typeof expectedCause> {
  readonly evidence: ExpectedEvidence;
}

/** The evidence for a cause in a response. */
export interface ExpectedEvidence extends InputOf<typeof expectedEvidence> {}

/** @internal */
export type Expect = false | ExpectedResponse | readonly ExpectedResponse[];

/** @internal */
export function listOfExpected(expect: Expect | undefined): false | readonly ExpectedResponse[] | undefined {
  if (expect === undefined || expect === false) return expect;
  return Array.isArray(expect) ? (expect as readonly ExpectedResponse[]) : [expect as ExpectedResponse];
}

/** @internal Whether a response is expected explicitly. */
export const isExpected = (expect: Expect | undefined): boolean => expect !== undefined && expect !== false;

/** @internal Problems of expectations that a deployment cannot express. */
export function expectedProblems({ node }: IConstruct, expect: Expect | undefined): Problem[] {
  if (!isExpected(expect)) return [];
  const { problems } = checkAroundTokens(expect, expectationProblems);
  const at = (path: string): string =>
    `${node.path}.expect${path === "" || path.startsWith("[") ? "" : "."}${path}`;
  return problems.map((p) => ({ ...p, path: at(p.path) }));
}
