import { type Problem, problem } from "../../model/index.js";
import {
  accepting,
  DOMAIN_NAME_LENGTH_MAX,
  DOMAIN_NAME_PATTERN,
  LONG_LABEL_PATTERN,
} from "../../model/text/textRule.js";
import { listOf, number, type PropTable, text } from "../props/propTable.js";
import { isKnown } from "../props/tokens.js";

/** Options of a self-signed certificate. */
export interface SelfSignedOptions {
  /**
   * Further domain names in the certificate, in lower case; `*.` may replace the first label. The certificate of a
   * listener always covers the host's names and addresses, and the names of the listener's virtual servers without a
   * separate material. The certificate of virtual servers covers their names.
   * @default - none
   */
  readonly dnsNames?: readonly string[];
  /**
   * Validity of the certificate in days, 1 to 36500.
   * @default 3650
   */
  readonly validityDays?: number;
  /**
   * Days before the expiry at which Terraform creates a new certificate; with 0, at the expiry. Must be less than
   * `validityDays`; otherwise every apply would create a new certificate.
   * @default - 30, or a third of `validityDays` if that is less
   */
  readonly renewalDays?: number;
}

/** @internal */
export const SELF_SIGNED_OPTIONS: PropTable<SelfSignedOptions> = {
  dnsNames: listOf(text),
  validityDays: number,
  renewalDays: number,
};

/** @internal */
export const DEFAULT_VALIDITY_DAYS = 3650;
const VALIDITY_DAYS_MAX = 36_500;

/** @internal */
export const defaultRenewalDays = (validityDays: number): number =>
  Math.min(30, Math.floor(validityDays / 3));

/** @internal */
export const DNS_NAME = {
  pattern: `^(?:\\*\\.)?${DOMAIN_NAME_PATTERN}$`,
  never: LONG_LABEL_PATTERN,
  lengthMax: DOMAIN_NAME_LENGTH_MAX,
  allowed: "a lower-case domain name such as files.example.org or *.example.org",
};

/** @internal */
export function selfSignedProblems(options: SelfSignedOptions): Problem[] {
  const { dnsNames = [], validityDays = DEFAULT_VALIDITY_DAYS, renewalDays } = options;
  const at = (name: string): string => `TlsMaterial.selfSigned.${name}`;
  const days = (name: "validityDays" | "renewalDays", from: number, to: number): Problem[] => {
    const value = options[name];
    if (value === undefined) return [];
    if (!isKnown(value)) {
      const more = {
        allowed: `${from} to ${to} days`,
        fix: "Use a literal: the dates of the certificate are computed from it.",
      };
      return [problem("config.wrong-type", at(name), "is not known at synthesis", more)];
    }
    if (Number.isInteger(value) && value >= from && value <= to) return [];
    const fix = name === "renewalDays" ? "Reduce `renewalDays`, or increase `validityDays`." : undefined;
    const more = { received: value, allowed: `${from} to ${to} days`, ...(fix && { fix }) };
    return [problem("config.out-of-range", at(name), "is out of range", more)];
  };
  const valid = days("validityDays", 1, VALIDITY_DAYS_MAX);
  const renewal =
    valid.length > 0 || renewalDays === undefined ? [] : days("renewalDays", 0, validityDays - 1);
  const names = dnsNames.flatMap((name, i) => {
    if (!isKnown(name) || accepting(DNS_NAME)(name)) return [];
    const { allowed } = DNS_NAME;
    const fix =
      "Use a domain name. The certificate covers the addresses of the host and of virtual servers in any case.";
    return [
      problem("config.bad-server-name", at(`dnsNames[${i}]`), "is not a domain name", {
        received: name,
        allowed,
        fix,
      }),
    ];
  });
  return [...valid, ...renewal, ...names];
}
