import type { IConstruct } from "constructs";
import type {
  acmeDns,
  cloudflare,
  desec,
  dnsProgram,
  dnsServer,
  dnsUpdate,
  duckdns,
  hetzner,
} from "../../model/config/dns.js";
import type { InputOf } from "../../model/schema/inferred.js";
import { warn } from "../props/warn.js";
import type { CertificateAuthorityInput, Problem, ProxyConfigInput } from "../../model/index.js";
import type { KeyType } from "../../model/net/tlsPolicy.js";
import {
  acmeCertificate,
  authorityOptions,
  DEFAULT_DIRECTORY,
  type externalAccountBinding,
} from "../../model/config/tls.js";
import { partProblems } from "../props/checks.js";
import { kindsOf } from "../props/fieldTable.js";
import { flag, listOf, type PropTable, record, refuseOptions, required, text } from "../props/propTable.js";
import { isKnown } from "../props/tokens.js";

/** The authority that issues certificates, the account, and the names of the certificates. */
export interface AcmeOptions
  extends
    InputOf<typeof authorityOptions>,
    Partial<Pick<InputOf<typeof acmeCertificate>, "names" | "keyType">> {
  readonly email: string;
  readonly agreeToTerms: boolean;
  readonly keyType?: KeyType;
  readonly dns?:
    | DnsUpdateOptions
    | CloudflareDnsOptions
    | DesecDnsOptions
    | DuckDnsOptions
    | HetznerDnsOptions
    | DnsProgramOptions
    | AcmeDnsOptions;
  readonly externalAccountBinding?: ExternalAccountBinding;
  /**
   * @remarks Public authorities issue certificates for public names only (`acme.private-name`). Wildcard names need
   * the challenge `dns` (`acme.wildcard-challenge`).
   * @default - the names of the virtual servers on the listeners of the material; without such names, the host's
   * name, or its addresses
   */
  readonly names?: readonly string[];
}

/** A DNS server: DNS records are queried from the server, or updated on the server. */
export interface DnsServerOptions extends InputOf<typeof dnsServer> {}

export interface DnsUpdateOptions extends InputOf<typeof dnsUpdate> {
  readonly server: DnsServerOptions;
  readonly nameServers?: readonly DnsServerOptions[];
}

/** A zone at Cloudflare. Its token needs the permission Zone, DNS, Edit, and no other. */
export interface CloudflareDnsOptions extends InputOf<typeof cloudflare> {
  readonly nameServers?: readonly DnsServerOptions[];
}

/** A domain at deSEC, or with `url` on a deSEC server of your own. */
export interface DesecDnsOptions extends InputOf<typeof desec> {
  readonly nameServers?: readonly DnsServerOptions[];
}

/** The one TXT value that DuckDNS keeps for a domain: names are proved one after the other. */
export interface DuckDnsOptions extends InputOf<typeof duckdns> {
  readonly nameServers?: readonly DnsServerOptions[];
}

/** A zone in the Hetzner Console. Hetzner's former DNS Console had another API, and other tokens. */
export interface HetznerDnsOptions extends InputOf<typeof hetzner> {
  readonly nameServers?: readonly DnsServerOptions[];
}

/** DNS records by a program on the host. */
export interface DnsProgramOptions extends InputOf<typeof dnsProgram> {
  readonly nameServers?: readonly DnsServerOptions[];
}

/** DNS records on an acme-dns server. CNAME records of `_acme-challenge.NAME` point to these records. */
export interface AcmeDnsOptions extends InputOf<typeof acmeDns> {
  readonly nameServers?: readonly DnsServerOptions[];
}

/** A key of an account at an authority. The key stays in a file on the host. */
export interface ExternalAccountBinding extends InputOf<typeof externalAccountBinding> {}

const ACME_OPTIONS: PropTable<AcmeOptions> = {
  ...kindsOf(authorityOptions),
  ...kindsOf(acmeCertificate, "keyType"),
  email: required(text),
  agreeToTerms: required(flag),
  names: listOf(text),
  dns: record,
};

/** @internal Throws if there is anything wrong with the options that does not depend on where they are used. */
export function refuseAcme(method: string, options: AcmeOptions): void {
  refuseOptions(method, options, ACME_OPTIONS, (fit) => acmeProblems(method, fit as AcmeOptions));
}

function acmeProblems(method: string, options: AcmeOptions): Problem[] {
  const { names, keyType } = options;
  const authority = { name: "a", ...authorityOf(options) };
  // A policy that accepts keys of any type: the listener's policy is not known here.
  const tls = {
    acme: { authority: "a", names: names ?? ["example.org"], keyType },
    policy: "mozilla-modern",
  } as const;
  const config: ProxyConfigInput = {
    version: 1,
    certificateAuthorities: [authority],
    listeners: [
      { name: "l", address: "192.0.2.1", port: 443, protocol: "https", tls },
      { name: "h", address: "192.0.2.1", port: 80, protocol: "http" },
    ],
    virtualServers: [{ name: "s", serverNames: ["_"], listeners: ["l", "h"], default: true, routes: [] }],
  };
  return [
    ...partProblems(config, "certificateAuthorities[0]", method),
    // Names of virtual servers are checked with these.
    ...(names === undefined ? [] : partProblems(config, "listeners[0].tls.acme", method)),
  ];
}

/** @internal Let's Encrypt refuses addresses of names that are kept for examples (RFC 2606, RFC 6761). */
export function warnOfExampleAddress(scope: IConstruct, { email }: AcmeOptions): void {
  if (!isKnown(email) || !EXAMPLE_ADDRESS.test(email)) return;
  warn(
    scope,
    `The mail address ${email} is an example, which authorities refuse: set \`email\` to an address that you read.`,
  );
}

const EXAMPLE_ADDRESS = /[@.](?:example(?:\.(?:com|net|org))?|test|invalid|localhost)$/;

/** @internal The authority's section of the config, without its name. */
export function authorityOf(options: AcmeOptions): Omit<CertificateAuthorityInput, "name"> {
  const { names, keyType, ...authority } = options;
  return authority;
}

/** @internal A name for an authority: that of its host, unless another one has it. */
export function authorityName(directory: string | undefined, taken: readonly string[]): string {
  const host = directory !== undefined && isKnown(directory) ? new URL(directory).hostname : undefined;
  const name = directory === undefined || directory === DEFAULT_DIRECTORY ? "letsencrypt" : nameOf(host);
  const free = [name, ...taken.map((_, i) => `${name}-${i + 2}`)].find((one) => !taken.includes(one));
  return free!;
}

/** The characters of a host, such as an address in brackets, that a name may have. */
const nameOf = (host = "authority"): string =>
  host
    .replace(/[^a-z0-9.-]/g, "-")
    .replace(/^[^a-z0-9]+/, "")
    .slice(0, 60);
