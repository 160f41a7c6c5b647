import type { IConstruct } from "constructs";
import { warn } from "./warn.js";
import type { CertificateAuthorityInput, Problem, ProxyConfigInput } from "../model/index.js";
import { KEY_TYPES, type KeyType } from "../model/tlsPolicy.js";
import { CHALLENGES, DEFAULT_DIRECTORY } from "../model/config/tls.js";
import { partProblems } from "./props/checks.js";
import {
  choice,
  fields,
  flag,
  listOf,
  type PropTable,
  record,
  refuseOptions,
  required,
  text,
} from "./props/propTable.js";
import { isKnown } from "./props/tokens.js";

/** Which authority issues certificates, to whom, and for which names. */
export interface AcmeOptions {
  /** Address that the authority uses for messages about the account, if it sends any. */
  readonly email: string;
  /** Whether you agree to the terms of service of the authority; must be `true` (`acme.terms-not-agreed`). */
  readonly agreeToTerms: boolean;
  /**
   * URL of the authority's ACME directory (RFC 8555), `https` only.
   * @default "https://acme-v02.api.letsencrypt.org/directory"
   */
  readonly directory?: string;
  /**
   * Names and addresses that the certificate covers, in lower case. Public authorities certify only public ones
   * (`acme.private-name`), and wildcard names are proved by `dns` only (`acme.wildcard-challenge`).
   * @default - the names of the virtual servers on the listeners of the material; without any, the host's name, or its addresses
   */
  readonly names?: readonly string[];
  /**
   * Type of the key: `ecdsa-p256`, `rsa-2048`, `rsa-3072` or `rsa-4096`. The ciphers of the listener's policy must
   * support it (`acme.key-type`).
   * @default - "ecdsa-p256", and "rsa-2048" where the policy excludes ECDSA, as `TlsPolicy.fileSync()` does
   */
  readonly keyType?: KeyType;
  /**
   * Profile of the certificate, as the authority names it.
   * @default - "shortlived" where a name is an address and the authority offers it; otherwise the authority's own choice
   */
  readonly profile?: string;
  /**
   * How names are proved: `http-01` by a response on port 80, `tls-alpn-01` by a handshake on port 443; the authority must
   * reach that port by every name. `dns-01` by a DNS record, which `dns` says who writes.
   * @default - "dns-01" with `dns`, "http-01" if clients reach an http listener of the proxy on port 80, otherwise "tls-alpn-01"
   */
  readonly challenge?: "http-01" | "tls-alpn-01" | "dns-01";
  /**
   * Who writes DNS records that prove names: for wildcard names, and for names that nobody outside can reach. Secrets stay in
   * files on the host.
   * @default - names are proved by the proxy's own ports
   */
  readonly dns?: DnsUpdateOptions | DnsProgramOptions | AcmeDnsOptions;
  readonly externalAccountBinding?: ExternalAccountBinding;
  /**
   * PEM file on the host: root certificates by which the authority's own server is trusted. An authority with roots is
   * considered private, and may certify any name.
   * @default - Node's roots; the authority is a public one
   */
  readonly roots?: string;
}

/** A server from which DNS records are asked, or which is told of them. */
export interface DnsServerOptions {
  /** Its IP address. */
  readonly address: string;
  readonly port?: number;
}

/** What is waited for once a record is written. */
export interface DnsWaitOptions {
  /**
   * Authoritative name servers, each of which has to show the record before the authority is asked.
   * @default - of "rfc2136" its `server`, otherwise none
   */
  readonly nameServers?: readonly DnsServerOptions[];
  readonly waitMs?: number;
}

/** Records by a dynamic update of their zone (RFC 2136), signed with a key (TSIG). */
export interface DnsUpdateOptions extends DnsWaitOptions {
  readonly type: "rfc2136";
  readonly server: DnsServerOptions;
  readonly zone: string;
  readonly keyFile: string;
  /**
   * Name that the CNAME records `_acme-challenge.NAME` of all names lead to, where another zone proves them.
   * @default - the records are written to `_acme-challenge.NAME`
   */
  readonly alias?: string;
  /**
   * How long resolvers may keep a record, from 1 to 86400 seconds.
   * @default 60
   */
  readonly ttlSeconds?: number;
}

/** Records by a program on the host. */
export interface DnsProgramOptions extends DnsWaitOptions {
  readonly type: "program";
  /**
   * The executable: called with `present` or `cleanup`, the record's name and its value, by the user that runs the proxy.
   * Absolute path.
   */
  readonly command: string;
  /**
   * File on the host with its secret, which only root has to read. The program finds it by the environment variable
   * `PORTICO_CREDENTIAL_FILE`. Absolute path.
   * @default - none
   */
  readonly credentialFile?: string;
  /**
   * How long a call may take, from 1000 to 2147483647 milliseconds.
   * @default 60000
   */
  readonly timeoutMs?: number;
  /**
   * Name that the CNAME records `_acme-challenge.NAME` of all names lead to, where another zone proves them.
   * @default - the records are written to `_acme-challenge.NAME`
   */
  readonly alias?: string;
}

/** Records of an acme-dns server, which CNAME records of `_acme-challenge.NAME` lead to. */
export interface AcmeDnsOptions extends DnsWaitOptions {
  readonly type: "acme-dns";
  /** URL of the server, `https` only. */
  readonly url: string;
  readonly accountsFile: string;
  /**
   * PEM file on the host: root certificates by which the server is trusted.
   * @default - Node's roots
   */
  readonly roots?: string;
}

/** A key of an account at an authority. The key itself stays in a file on the host. */
export interface ExternalAccountBinding {
  readonly keyId: string;
  readonly keyFile: string;
}

const ACME_OPTIONS: PropTable<AcmeOptions> = {
  email: required(text),
  agreeToTerms: required(flag),
  directory: text,
  names: listOf(text),
  keyType: choice(...KEY_TYPES),
  profile: text,
  challenge: choice(...CHALLENGES),
  dns: record,
  externalAccountBinding: fields<ExternalAccountBinding>({ keyId: required(text), keyFile: required(text) }),
  roots: text,
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

/** Of an address in brackets only what is allowed in a name. */
const nameOf = (host = "authority"): string =>
  host
    .replace(/[^a-z0-9.-]/g, "-")
    .replace(/^[^a-z0-9]+/, "")
    .slice(0, 60);
