import type { KeyType, WantedCertificate as Wanted } from "../../model/serving.js";
import type { Challenge } from "../dispatch/challenge.js";
import type { ErrorLevel } from "../exchange/exchange.js";
import type { CertificateContents } from "../tls/tlsContents.js";

/** The interface between the engine and the master. */

export type { KeyType };

/** A certificate that a config wants, with a hash of its authority's files. */
export interface OrderedCertificate extends Wanted {
  /** Changes with the contents of those files; absent if the authority names none. */
  readonly files?: string | undefined;
}

/** PEM; the chain is included. */
export type KeyPair = Pick<CertificateContents, "key" | "cert">;

export interface AcmeHost {
  /** Sets the challenges from now on; resolves when every accepting worker responds to them. */
  respondToChallenges(challenges: readonly Challenge[]): Promise<void>;
  /** Why listeners cannot use a certificate that was issued; undefined if they can. */
  unfit(issued: CertificateContents): Promise<string | undefined>;
  /** A certificate was issued. It is already on disk. */
  install(issued: CertificateContents): void;
  log(level: ErrorLevel, message: string): void;
}

export interface CertificateStatus {
  readonly id: string;
  readonly names: readonly string[];
  /** Name of the authority in the config. */
  readonly authority: string;
  /** Issuer of the current certificate; absent if there is none. */
  readonly issuer?: string;
  /** Milliseconds since 1970, as all times here. */
  readonly notAfter?: number;
  /** When the current certificate is to be renewed, whatever came of attempts since then; absent if there is none. */
  readonly renewAt?: number;
  /** When the authority will be asked again; absent while it is being asked, and while `waitsFor` is set. */
  readonly nextAttempt?: number;
  /** `none`: there is no certificate, and none is being ordered. `waiting`: the last attempt failed. */
  readonly state: "none" | "ordering" | "waiting" | "valid";
  readonly lastError?: AcmeFailure;
  /** Address without which this host does not ask; absent if it has it. */
  readonly waitsFor?: string;
}

/** Why there is no (new) certificate, in words. */
export interface AcmeFailure {
  /** A type of RFC 8555 without its prefix (`rateLimited`), or one of ours (`unreachable`). */
  readonly code: string;
  /** A sentence without a full stop, with the names it concerns and the authority's own words. */
  readonly message: string;
  readonly fix: string;
  /** When it happened. */
  readonly at: number;
}

/** Why a request for a certificate is refused. */
export type OrderRefusal = Pick<AcmeFailure, "message" | "fix">;

/** The refusal if this process leaves the certificate to another one, or no longer wants it. */
export const LEFT: OrderRefusal = {
  message: "portico is stopping or upgrading, or its config no longer contains this certificate",
  fix: "Run the command again.",
};
