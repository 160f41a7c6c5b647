import type { FindingLevel } from "./findings.js";

/** Every kind of finding of the security review: level, meaning, fix. An id is never renamed, or given another meaning. */
export const SECURITY_FINDINGS = {
  "security.plain-http": [
    "error",
    "passwords and data of an application pass without encryption",
    "Use `mode: Mode.tls()` of the front end, whose http listener only redirects, or bind the listener to a loopback address.",
  ],
  "security.private-open": [
    "error",
    "a path that the application's manual tells to close is open to everyone",
    'Remove `access: "open"` of the route, or give the route an `access` with `allow`.',
  ],
  "security.no-guard": [
    "warning",
    "nothing slows down those who guess passwords at a log-in",
    "Set `passwordGuard: {}` of the front end or the site, or close the path with `access`.",
  ],
  "security.self-signed": [
    "warning",
    "the certificate is self-signed: users learn to ignore the warning of their browser",
    "Use `TlsMaterial.acme()`, or `TlsMaterial.fromFiles()` with a certificate of an authority.",
  ],
  "security.no-hsts": [
    "warning",
    "browsers may be led to http, because the site does not send Strict-Transport-Security",
    "Set `hsts: {}` of the mode or of the virtual server.",
  ],
  "security.unknown-certificate": [
    "note",
    "whether the certificate is self-signed is unknown: it cannot be read here",
    "Run the review on the host, as a user who may read the certificate.",
  ],
  "security.unused-acceptance": [
    "warning",
    "an accepted risk is not there",
    "Remove the entry of `acceptedRisks`, or correct its `at`.",
  ],
} as const satisfies Record<string, readonly [level: FindingLevel, message: string, fix: string]>;

export type SecurityFindingId = keyof typeof SECURITY_FINDINGS;
