import { getCurves } from "node:crypto";
import { getCiphers } from "node:tls";
import { nearest } from "../../model/text/nearest.js";
import { type Problem, problem } from "../../model/index.js";
import { contextOf, knowsGroup } from "../../model/net/openssl.js";
import { isKnown } from "./tokens.js";

/** Ciphers and groups of a policy that no OpenSSL is likely to know. The host checks them by its own. */
export function policyNameProblems({
  ciphers = "",
  curves = [],
}: {
  readonly ciphers?: string;
  readonly curves?: readonly string[];
}): Problem[] {
  const at = "TlsPolicy.custom";
  // What is excluded may be unknown, and OpenSSL joins words with `+`.
  const names = isKnown(ciphers) ? ciphers.split(/[:, ]/).filter((name) => /^\w/.test(name)) : [];
  const unknown = names.filter((name) => !knowsCipher(name));
  return [
    ...unknown.map((received) => unknownName(`${at}.ciphers`, UNKNOWN_CIPHER, received, getCiphers())),
    ...curves.flatMap((curve, i) =>
      !isKnown(curve) || knowsGroup(curve) || LATER.test(curve)
        ? []
        : [unknownName(`${at}.curves[${i}]`, UNKNOWN_GROUP, curve, GROUPS)],
    ),
  ];
}

const UNKNOWN_CIPHER = "contains a cipher that OpenSSL does not know";
const UNKNOWN_GROUP = "is not a key exchange group that OpenSSL knows";

function unknownName(path: string, message: string, received: string, known: readonly string[]): Problem {
  const near = nearest(received, known);
  const name = known === GROUPS ? near : near?.toUpperCase();
  const fix = name === undefined ? {} : { fix: `Did you mean \`${name}\`?` };
  const allowed = known === GROUPS ? GROUPS.join(", ") : "names that `openssl ciphers` lists";
  return problem("tls.bad-policy", path, message, {
    received,
    allowed,
    ...fix,
  });
}

const knowsCipher = (name: string): boolean =>
  name.startsWith("TLS_")
    ? getCiphers().includes(name.toLowerCase())
    : "context" in contextOf({ ciphers: name });

/** Groups that resist quantum computers, which the OpenSSL of this machine may be too old for. */
const LATER = /^(?:X25519|X448|SecP256r1|SecP384r1)?MLKEM(?:512|768|1024)$/;

const GROUPS = [
  "X25519MLKEM768",
  "X25519",
  "X448",
  "P-256",
  "P-384",
  "P-521",
  ...getCurves().filter((one) => /^(?:secp(?:384|521)r1|prime256v1)$/.test(one)),
];
