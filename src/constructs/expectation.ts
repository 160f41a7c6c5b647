import type { IConstruct } from "constructs";
import type {
  expectation,
  expectedCause,
  expectedEvidence,
  expectedField,
  expectedLocation,
  expectedMember,
} from "../model/expect.js";
import type { InputOf } from "../model/inferred.js";
import { expectationProblems } from "../model/config/parse.js";
import type { Problem } from "../model/index.js";
import { checkAroundTokens } from "./props/tokens.js";

/**
 * What a route or a virtual server answers: a request that changes nothing, and what its response has to be. One that says
 * nothing of the response expects what the action promises.
 */
export interface ExpectedResponse extends InputOf<typeof expectation> {
  readonly location?: string | ExpectedLocation | readonly string[];
  readonly fields?: readonly ExpectedField[];
  readonly members?: readonly ExpectedMember[];
  readonly causes?: readonly ExpectedCause[];
}

/** Another scheme at the host that was asked for, on the port of the route's redirect. */
export interface ExpectedLocation extends InputOf<typeof expectedLocation> {}

/** A field of a response; with a name alone it is there with any value. */
export interface ExpectedField extends InputOf<typeof expectedField> {}

/** A member of the JSON object that is the body. */
export interface ExpectedMember extends InputOf<typeof expectedMember> {}

/** A cause of an unexpected response. */
export interface ExpectedCause extends InputOf<typeof expectedCause> {
  readonly evidence: ExpectedEvidence;
}

/** What a response shows. */
export interface ExpectedEvidence extends InputOf<typeof expectedEvidence> {}

/** @internal */
export type Expect = false | ExpectedResponse | readonly ExpectedResponse[];

/** @internal */
export function listOfExpected(expect: Expect | undefined): false | readonly ExpectedResponse[] | undefined {
  if (expect === undefined || expect === false) return expect;
  return Array.isArray(expect) ? (expect as readonly ExpectedResponse[]) : [expect as ExpectedResponse];
}

/** @internal What a deployment could not say. */
export function expectedProblems({ node }: IConstruct, expect: Expect | undefined): Problem[] {
  if (expect === undefined || expect === false) return [];
  const { problems } = checkAroundTokens(expect, expectationProblems);
  const at = (path: string): string =>
    `${node.path}.expect${path === "" || path.startsWith("[") ? "" : "."}${path}`;
  return problems.map((p) => ({ ...p, path: at(p.path) }));
}
