/** A response by which an authority refuses something (RFC 8555, 6.7; RFC 7807), or why there is none. */
export interface AcmeProblem {
  /** A type of RFC 8555 without its prefix, or one of Portico. */
  readonly code: string;
  /** The authority's own words, or ours, without a full stop. */
  readonly detail: string;
  /** The name that it concerns, where it does not concern all. */
  readonly name?: string | undefined;
  /** The page on which a person has to agree to something. */
  readonly instance?: string | undefined;
}

export class AcmeError extends Error {
  constructor(
    readonly code: string,
    readonly detail: string,
    readonly more: {
      /** A problem for each name that the refusal concerns. */
      readonly subproblems?: readonly AcmeProblem[];
      readonly instance?: string | undefined;
      /** When to ask the authority again, in milliseconds since 1970. */
      readonly retryAt?: number | undefined;
      /** Whether the request was not sent, so that the authority's limits are not reached. */
      readonly notAsked?: boolean;
    } = {},
  ) {
    super(`${code}: ${detail}`);
    this.name = "AcmeError";
  }

  /**
   * The same error for an order whose names were all proved: `unauthorized` then does not mean that a proof is missing.
   */
  afterProof(): AcmeError {
    const { detail, more } = this;
    const code = (of: string): string => (of === "unauthorized" ? "notAllowed" : of);
    const subproblems = more.subproblems?.map((one) => ({ ...one, code: code(one.code) }));
    return new AcmeError(code(this.code), detail, { ...more, ...(subproblems && { subproblems }) });
  }

  /** A failed connection as an error with a readable message. */
  static ofNetwork(host: string, error: NodeJS.ErrnoException): AcmeError {
    const { code = "" } = error;
    const known = [...NETWORK, ...TLS].find(([codes]) => codes.includes(code));
    const kind = TLS.some(([codes]) => codes.includes(code)) ? "untrusted" : "unreachable";
    const clock = code.startsWith("CERT_") && code !== "CERT_UNTRUSTED";
    return new AcmeError(clock ? "clock" : kind, `${host}: ${known?.[1] ?? error.message}`);
  }
}

export const acmeError = (error: unknown): AcmeError =>
  error instanceof AcmeError ? error : new AcmeError("internal", String(error));

const NETWORK: readonly (readonly [codes: readonly string[], words: string])[] = [
  [["ENOTFOUND", "ENODATA"], "no address is known for this name"],
  [["EAI_AGAIN", "ESERVFAIL", "ETIMEOUT"], "the DNS servers of this host did not respond"],
  [["ECONNREFUSED"], "the connection was refused"],
  [["ECONNRESET", "EPIPE"], "the connection was closed before the response"],
  [["ETIMEDOUT"], "the connection attempt got no response"],
  [["ENETUNREACH", "EHOSTUNREACH"], "there is no route to it"],
];

const TLS: readonly (readonly [codes: readonly string[], words: string])[] = [
  [["CERT_NOT_YET_VALID"], "by the clock of this host, its certificate is not valid yet"],
  [["CERT_HAS_EXPIRED"], "by the clock of this host, its certificate has expired"],
  [["ERR_TLS_CERT_ALTNAME_INVALID"], "its certificate is for another name"],
  [
    [
      "DEPTH_ZERO_SELF_SIGNED_CERT",
      "SELF_SIGNED_CERT_IN_CHAIN",
      "UNABLE_TO_GET_ISSUER_CERT",
      "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
      "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
      "CERT_UNTRUSTED",
    ],
    "its certificate is not from a root that is trusted here",
  ],
];
