import type { IConstruct } from "constructs";
import { expectationProblems } from "../model/config/parse.js";
import type { Problem } from "../model/index.js";
import { checkAroundTokens } from "./props/tokens.js";

/**
 * What a route or a virtual server answers: a request that changes nothing, and what its response has to be. One that says
 * nothing of the response expects what the action promises.
 */
export interface ExpectedResponse {
  readonly name?: string;
  readonly path?: string;
  readonly host?: string;
  readonly method?: "HEAD" | "GET" | "OPTIONS";
  readonly listeners?: "first" | "each";
  readonly file?: "image";
  readonly status?: number | readonly number[];
  readonly from?: "upstream";
  readonly location?: string | ExpectedLocation | readonly string[];
  readonly http2?: true;
  readonly fields?: readonly ExpectedField[];
  readonly members?: readonly ExpectedMember[];
  readonly causes?: readonly ExpectedCause[];
}

/** Another scheme at the host that was asked for, on the port of the route's redirect. */
export interface ExpectedLocation {
  readonly scheme: "http" | "https";
  readonly path: string;
}

/** A field of a response; with a name alone it is there with any value. */
export interface ExpectedField {
  readonly name: string;
  readonly value?: string;
  readonly includes?: readonly string[];
  readonly mediaType?: string;
  readonly version?: boolean;
  readonly absent?: true;
}

/** A member of the JSON object that is the body. */
export interface ExpectedMember {
  readonly name: string;
  readonly values: readonly string[];
}

/** A cause of an unexpected response. */
export interface ExpectedCause {
  readonly evidence: ExpectedEvidence;
  readonly says: string;
  readonly code?: string;
  readonly because?: readonly string[];
  readonly fix?: string;
  readonly settings?: readonly string[];
}

/** What a response shows. */
export interface ExpectedEvidence {
  readonly status?: readonly number[];
  readonly statusNot?: readonly number[];
  readonly page?: "proxy" | "other";
  readonly server?: "version" | "none";
  readonly location?: "path" | "origin";
  readonly http2?: false;
}

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
