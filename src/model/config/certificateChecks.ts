import { isIP } from "node:net";
import { ipv4Scope, ipv6Scope, isWildcard } from "../net/address.js";
import { type Problem, problem } from "../text/problem.js";
import { isWildcardName } from "../net/serverName.js";
import { keyTypeFor, takesKeyType } from "../net/tlsPolicy.js";
import type { ChallengeType } from "./tls.js";
import { certificateFields, challengeOf } from "./certificates.js";
import type { AcmeCertificateConfig, CertificateAuthorityConfig, ProxyConfig, TlsConfig } from "./config.js";
import { challengeName } from "../net/certificateName.js";

/** Rules of certificates and of the authorities that they come from. */
export function certificateProblems(config: ProxyConfig): Problem[] {
  const used = new Set<string>();
  const problems = config.listeners.flatMap(({ tls }, l) =>
    tls === undefined
      ? []
      : certificateFields(tls).flatMap(({ fields, at }) => {
          const path = `listeners[${l}].tls${at === "" ? "" : `.${at}`}`;
          if (fields.acme !== undefined) used.add(fields.acme.authority);
          return [...sourceProblems(fields, path), ...acmeProblems(config, tls, fields.acme, `${path}.acme`)];
        }),
  );
  return [
    ...problems,
    ...config.certificateAuthorities.flatMap((authority, i) =>
      authorityProblems(config, authority, used.has(authority.name), `certificateAuthorities[${i}]`),
    ),
  ];
}

const isKeyName = (path: string): boolean => /\/(?:[^/]*[.-])?(?:privkey|private)[^/]*$|\.key$/i.test(path);
const isCertificateName = (path: string): boolean =>
  /\/[^/]*(?:fullchain|cert|chain)[^/]*$|\.(?:crt|cer)$/i.test(path);
/** Certbot's name of the certificate alone, beside the file with its chain. */
const LEAF = /(?<=^\/etc\/letsencrypt\/live\/[^/]+)\/cert\.pem$/;

type CertificateOrigin = Pick<TlsConfig, "certificate" | "key" | "acme">;

function sourceProblems(source: CertificateOrigin, path: string): Problem[] {
  const files = ["certificate", "key"] as const;
  const { certificate = "", key = "" } = source;
  if (isKeyName(certificate) && !isKeyName(key) && isCertificateName(key))
    return [
      problem("files.key-mismatch", `${path}.certificate`, "is a private key, by its name", {
        received: certificate,
        allowed: "the file of the certificate",
        fix: "Exchange the paths of `certificate` and `key`.",
      }),
    ];
  if (LEAF.test(certificate))
    return [
      problem("files.bad-certificate", `${path}.certificate`, "is the certificate without its chain", {
        received: certificate,
        allowed: "the certificate, followed by its chain",
        fix: `Use \`${certificate.replace(LEAF, "/fullchain.pem")}\`: many clients refuse a certificate without its chain.`,
      }),
    ];
  if (source.acme === undefined)
    return files
      .filter((name) => source[name] === undefined)
      .map((name) =>
        problem("config.missing-field", `${path}.${name}`, "is missing", {
          allowed: "the path of a file, or `acme` in place of `certificate` and `key`",
        }),
      );
  return files
    .filter((name) => source[name] !== undefined)
    .map((name) =>
      problem("config.certificate-source", `${path}.${name}`, "cannot be combined with `acme`", {
        received: source[name],
      }),
    );
}

function acmeProblems(
  config: ProxyConfig,
  { policy }: TlsConfig,
  acme: AcmeCertificateConfig | undefined,
  path: string,
): Problem[] {
  if (acme === undefined) return [];
  const authorities = config.certificateAuthorities;
  const authority = authorities.find(({ name }) => name === acme.authority);
  const { keyType } = acme;
  return [
    ...(authority === undefined
      ? [
          problem(
            "config.unknown-reference",
            `${path}.authority`,
            "is not the name of a certificate authority",
            {
              received: acme.authority,
              allowed:
                authorities.map(({ name }) => name).join(", ") || "no certificate authority is defined",
            },
          ),
        ]
      : acme.names.flatMap((name, i) => [
          ...nameProblems(name, authority, `${path}.names[${i}]`),
          ...proofProblems(name, authority, challengeOf(config, authority), `${path}.names[${i}]`),
        ])),
    ...acme.names.flatMap((name, i) =>
      acme.names.indexOf(name) === i
        ? []
        : [
            problem("config.duplicate-server-name", `${path}.names[${i}]`, "is listed twice", {
              received: name,
              fix: "List each name of the certificate once.",
            }),
          ],
    ),
    ...(keyType === undefined || takesKeyType(policy, keyType)
      ? []
      : [
          problem(
            "acme.key-type",
            `${path}.keyType`,
            "is a type of key that the ciphers of the policy exclude",
            {
              received: keyType,
              allowed: keyTypeFor(policy),
            },
          ),
        ]),
  ];
}

/** A public authority certifies only names that mean the same host for everyone on the internet. */
function nameProblems(name: string, { roots }: CertificateAuthorityConfig, path: string): Problem[] {
  const why = roots === undefined ? whyPrivate(name) : undefined;
  if (why === undefined) return [];
  return [problem("acme.private-name", path, `${why}: no public authority certifies it`, { received: name })];
}

/** A wildcard is proved by the DNS only (RFC 8555, 8.4), and an address never (RFC 8738, 7). */
function proofProblems(
  name: string,
  { dns }: CertificateAuthorityConfig,
  challenge: ChallengeType,
  path: string,
): Problem[] {
  const received = name;
  if (isWildcardName(name) && challenge !== "dns-01")
    return [
      problem("acme.wildcard-challenge", path, `is a wildcard name, which ${challenge} cannot prove`, {
        received,
      }),
    ];
  if (challenge !== "dns-01") return [];
  if (isIP(name) !== 0)
    return [
      problem("acme.address-challenge", path, "is an address, which dns-01 cannot prove", { received }),
    ];
  const known = knownZone(dns);
  if (known === undefined || known.alias !== undefined || inZone(challengeName(name), known.zone)) return [];
  const message = `needs a DNS record outside the zone ${known.zone}`;
  return [problem("acme.outside-zone", path, message, { received, fix: known.fix })];
}

/** The zone of the records, where it does not take a look at the DNS. */
function knownZone(dns: CertificateAuthorityConfig["dns"]) {
  if (dns?.type === "rfc2136") return { zone: dns.zone, alias: dns.alias, fix: undefined };
  return dns?.type === "duckdns" ? { zone: "duckdns.org", alias: dns.alias, fix: DUCKDNS } : undefined;
}

const DUCKDNS =
  "Use a name below your domain at DuckDNS, such as `files.example.duckdns.org`. If a CNAME record leads there, set `alias` to your domain at DuckDNS.";

const inZone = (name: string, zone: string): boolean => name === zone || name.endsWith(`.${zone}`);

/** Proofs by DNS need a provider that writes the records. */
function dnsProblems({ challenge, dns }: CertificateAuthorityConfig, path: string): Problem[] {
  const chosen = challenge ?? (dns === undefined ? undefined : "dns-01");
  if (chosen === "dns-01" && dns === undefined)
    return [
      problem("acme.dns-missing", `${path}.dns`, "is missing, but the challenge dns-01 needs DNS records", {
        allowed:
          "an object whose `type` is cloudflare, desec, duckdns, hetzner, rfc2136, acme-dns or program",
      }),
    ];
  if (dns === undefined) return [];
  if (chosen !== "dns-01")
    return [
      problem("acme.dns-missing", `${path}.challenge`, "is not dns-01, the only challenge that uses `dns`", {
        received: chosen,
        allowed: "dns-01",
        fix: "Remove `challenge`, or remove `dns`.",
      }),
    ];
  const known = knownZone(dns);
  if (known?.alias === undefined || inZone(known.alias, known.zone)) return [];
  const { zone, alias: received, fix } = known;
  return [problem("acme.outside-zone", `${path}.dns.alias`, `is not in the zone ${zone}`, { received, fix })];
}

function whyPrivate(name: string): string | undefined {
  if (isIP(name) !== 0) {
    const scope = isIP(name) === 4 ? ipv4Scope(name) : ipv6Scope(name);
    return scope === "public" ? undefined : "is not a public address";
  }
  if (!name.includes(".")) return "is a name without a domain";
  return PRIVATE_DOMAINS.test(name) ? "is a name of a private network" : undefined;
}

/**
 * RFC 6761, RFC 6762, RFC 7686, RFC 8375, and `internal`, which ICANN set aside; the others are common, and public
 * nowhere.
 */
const PRIVATE_DOMAINS = /\.(?:localhost|local|test|example|invalid|onion|home\.arpa|internal|lan|home|corp)$/;

function authorityProblems(
  config: ProxyConfig,
  authority: CertificateAuthorityConfig,
  isUsed: boolean,
  path: string,
): Problem[] {
  const terms = authority.agreeToTerms
    ? []
    : [
        problem(
          "acme.terms-not-agreed",
          `${path}.agreeToTerms`,
          "is not true: without it, the authority issues no certificate",
          {
            received: false,
            allowed: "true",
          },
        ),
      ];
  const { holderAddress } = authority;
  const proofs = dnsProblems(authority, path);
  const holder =
    holderAddress === undefined || !isWildcard(holderAddress)
      ? []
      : [
          problem("config.bad-address", `${path}.holderAddress`, "is a wildcard address", {
            received: holderAddress,
            allowed: "the virtual address of the two hosts",
            fix: "Use the virtual address, which only one host has at a time.",
          }),
        ];
  const plain = config.listeners.some(({ protocol }) => protocol === "http");
  if (!isUsed || plain || challengeOf(config, authority) !== "http-01")
    return [...terms, ...holder, ...proofs];
  const message = "needs an http listener, but there is none";
  const challenge = problem("acme.no-http-listener", `${path}.challenge`, message, { received: "http-01" });
  return [...terms, ...holder, ...proofs, challenge];
}
