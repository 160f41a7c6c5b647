import type { IConstruct } from "constructs";
import { expectationProblems } from "../model/config/parse.js";
import type { Problem } from "../model/index.js";
import { checkAroundTokens } from "./props/tokens.js";

/**
 * What a route or a virtual server answers: a request that changes nothing, and what its answer has to be. One that says
 * nothing of the answer expects what the action promises.
 */
export interface ExpectedResponse {
  /**
   * Name in messages; each response of a deployment needs its own.
   * @default - the names of the virtual server and the route
   */
  readonly name?: string;
  /**
   * Path to request, as URLs have it, with a query if need be.
   * @default - the route's path; `/` for a virtual server
   */
  readonly path?: string;
  /**
   * Name to ask for, or `unknown` for one that no virtual server has.
   * @default - the first name of the virtual server
   */
  readonly host?: string;
  /**
   * Method; others might change something.
   * @default "HEAD"
   */
  readonly method?: "HEAD" | "GET" | "OPTIONS";
  /**
   * Whether one listener is asked, or all of them.
   * @default "first"
   */
  readonly listeners?: "first" | "each";
  /**
   * Adds to the path the name of an image, found in the directory of the route.
   * @default - the path as it is
   */
  readonly file?: "image";
  /**
   * Status of the answer, from 100 to 599, or a list of those that are as good.
   * @default - any
   */
  readonly status?: number | readonly number[];
  /**
   * `upstream`: the answer is no 502, no 504 and no 404 of the proxy.
   * @default - any response
   */
  readonly from?: "upstream";
  /**
   * Where `Location` leads: a URL, a path at the scheme and host that were asked for, or a path of another scheme.
   * @default - anywhere
   */
  readonly location?: string | ExpectedLocation;
  /**
   * Whether HTTP/2 is negotiated with a listener that offers it.
   * @default - either version
   */
  readonly http2?: true;
  /**
   * Fields of the answer.
   * @default - any
   */
  readonly fields?: readonly ExpectedField[];
  /**
   * Why the answer may be another one; messages name the first that fits.
   * @default - what is known of any proxy
   */
  readonly causes?: readonly ExpectedCause[];
}

/** Another scheme at the host that was asked for, on the port of the route's redirect. */
export interface ExpectedLocation {
  /** Scheme of the `Location`. */
  readonly scheme: "http" | "https";
  /** Path of the `Location`. */
  readonly path: string;
}

/** A field of an answer; with a name alone it is there with any value. */
export interface ExpectedField {
  /** Name of the field. */
  readonly name: string;
  /**
   * Its value.
   * @default - any
   */
  readonly value?: string;
  /**
   * Members of its list, in any order and among others.
   * @default - any
   */
  readonly includes?: readonly string[];
  /**
   * Media type, whatever its parameters; `image/*` for any image.
   * @default - any
   */
  readonly mediaType?: string;
  /**
   * Whether `Server` shows a version.
   * @default - either
   */
  readonly version?: boolean;
  /**
   * The field is not there.
   * @default - it is there
   */
  readonly absent?: true;
}

/** A cause of an unexpected answer. */
export interface ExpectedCause {
  /** What the answer has to show, all of it; `{}` for any answer. */
  readonly evidence: ExpectedEvidence;
  /**
   * The cause in words; `{status}`, `{location}`, `{host}`, `{path}` and `{upstream}` stand for what was seen and asked.
   */
  readonly says: string;
  /**
   * Row of `portico doctor` that fails because of it.
   * @default - only the row of the response
   */
  readonly code?: string;
  /**
   * Rows of `portico doctor` that explain it where they failed.
   * @default - those of the proxy
   */
  readonly because?: readonly string[];
  /**
   * What to do about it.
   * @default - what the answer should be
   */
  readonly fix?: string;
  /**
   * Settings of the application that are wrong.
   * @default - none
   */
  readonly settings?: readonly string[];
}

/** What an answer shows. */
export interface ExpectedEvidence {
  /**
   * The status is one of these.
   * @default - any
   */
  readonly status?: readonly number[];
  /**
   * The status is none of these.
   * @default - any
   */
  readonly statusNot?: readonly number[];
  /**
   * Whether it is an error page of the proxy.
   * @default - either
   */
  readonly page?: "proxy" | "other";
  /**
   * Whether `Server` has a version.
   * @default - either
   */
  readonly server?: "version" | "none";
  /**
   * What is wrong with `Location`: its path, or only its scheme, host or port.
   * @default - it is not looked at
   */
  readonly location?: "path" | "origin";
  /**
   * HTTP/2 was not negotiated.
   * @default - either version
   */
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
