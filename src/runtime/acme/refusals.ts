import { printableValue } from "../../model/text/printable.js";
import type { AcmeError, AcmeProblem } from "./acmeError.js";
import {
  challengeName,
  type DnsProofsConfig,
  type WantedCertificate as Wanted,
} from "../../model/serving.js";
import type { AcmeFailure, OrderedCertificate } from "./acmeHost.js";
import { DNS_APIS } from "./dnsApis.js";

/** Explains refusals of an authority, each with a fix. */

export function failureOf(error: AcmeError, wanted: OrderedCertificate, at: number): AcmeFailure {
  const { code, detail, more } = error;
  const all: readonly AcmeProblem[] =
    more.subproblems !== undefined && more.subproblems.length > 0
      ? more.subproblems
      : [{ code, detail, instance: more.instance }];
  // An authority may call a name by anything.
  const isOurs = ({ name }: AcmeProblem): boolean => name !== undefined && wanted.names.includes(name);
  const parts = all.map((part) => ({
    ...part,
    code: dnsCode(part.code, wanted),
    name: isOurs(part) ? part.name : undefined,
  }));
  const messages = parts.map((part) => messageOf(part, wanted));
  const shown = messages.slice(0, PARTS_MAX);
  const hidden = messages.length - shown.length;
  return {
    code: parts[0]!.code,
    message: [...shown, ...(hidden > 0 ? [`and ${hidden} more`] : [])].join("; "),
    fix: fixOf(parts[0]!, wanted),
    at,
  };
}

/** Adds how to end a long pause that the authority asked for. A pause by Portico's own limits cannot be ended. */
export const withWayAroundPause = (failure: AcmeFailure, { names }: OrderedCertificate): AcmeFailure => ({
  ...failure,
  fix: `${failure.fix} The ${failure.code === "dnsUpdate" ? "DNS provider" : "authority"} asked for this pause; \`portico certificates renew ${names[0]}\` tries before its end.`,
});

/** The fix for a failure that another process reports, in this process's own words. */
export function fixFor({ code, message }: Pick<AcmeFailure, "code" | "message">, wanted: Wanted): string {
  const name = wanted.names.find((one) => message.startsWith(`${one}: `));
  return fixOf({ code, detail: "", name }, wanted);
}

const PARTS_MAX = 5;
const DETAIL_CHARACTERS_MAX = 300;

function messageOf({ code, detail, name }: AcmeProblem, wanted: OrderedCertificate): string {
  const what = wordsOf(code)?.what(portOf(wanted));
  const sentence = printableValue(detail).trimEnd();
  const own = sentence.endsWith(".") ? sentence.slice(0, -1) : sentence;
  const shown = own.length > DETAIL_CHARACTERS_MAX ? `${own.slice(0, DETAIL_CHARACTERS_MAX)}…` : own;
  const said = [what, shown].filter((text) => text !== undefined && text !== "").join(": ");
  return `${name ?? wanted.names.join(", ")}: ${said === "" ? code : said}`;
}

function fixOf({ code, name, instance }: AcmeProblem, wanted: Wanted): string {
  const words = wordsOf(code) ?? WORDS["serverInternal"]!;
  return words.fix({ wanted, name: name ?? wanted.names[0]!, port: portOf(wanted), instance });
}

/** An authority may choose a type that every object has, such as `constructor`. */
const wordsOf = (code: string): RefusalWords | undefined =>
  Object.hasOwn(WORDS, code) ? WORDS[code] : undefined;

const portOf = ({ challenge }: Wanted): number => (challenge === "http-01" ? 80 : 443);

/** The data that a fix can mention. */
interface About {
  readonly wanted: Wanted;
  readonly name: string;
  readonly port: number;
  readonly instance: string | undefined;
}

interface RefusalWords {
  /** What happened; undefined where the authority's words are enough. */
  what(port: number): string | undefined;
  fix(about: About): string;
}

const RETRIED = "Portico tries again later.";

// Refusals where names are proved by DNS records.

/**
 * An authority uses the same error types for DNS records as for HTTP and TLS responses: the proof is missing or wrong.
 */
const NOT_PROVED = new Set(["dns", "unauthorized", "incorrectResponse"]);

const dnsCode = (code: string, { challenge }: Pick<Wanted, "challenge">): string =>
  challenge === "dns-01" && NOT_PROVED.has(code) ? "dnsProof" : code;

const DNS_WORDS: Readonly<Record<string, RefusalWords>> = {
  dnsUpdate: {
    what: () => "the DNS record that proves the name cannot be written",
    fix: ({ wanted: { authority } }) =>
      `${authority.dns === undefined ? "" : writing(authority.dns)} ${RETRIED}`,
  },
  dnsRecord: {
    what: () => "the name servers do not show the DNS record that proves the name",
    fix: ({ wanted: { authority } }) =>
      `Check that the name servers of ${authority.name} get the changes of their zone (NOTIFY, zone transfers), and list only such servers in \`dns.nameServers\`; \`dns.waitMs\` limits how long they may take. ${RETRIED}`,
  },
  dnsProof: {
    what: () => "the authority did not find the DNS record that proves the name",
    fix: (about) =>
      `Check that every public name server of the domain shows the record: dig TXT ${challengeName(about.name)}${alias(about)}. ${RETRIED}`,
  },
};

function writing(dns: DnsProofsConfig): string {
  switch (dns.type) {
    case "rfc2136":
      return `Let the DNS server ${dns.server.address} accept updates of ${dns.zone} that are signed with the key of ${dns.keyFile} (in BIND: \`update-policy\`), over TCP from this host.`;
    case "program":
      return `Call ${dns.command} by hand with the same arguments, as the user of the service.`;
    case "acme-dns":
      return `Check ${dns.accountsFile} against the response of ${dns.url} to the registration.`;
    default:
      return `Put ${DNS_APIS[dns.type].token} into ${dns.tokenFile}.`;
  }
}

function alias({ name, wanted: { authority } }: About): string {
  const { dns } = authority;
  if (dns === undefined) return "";
  const target = dns.type === "acme-dns" ? "`fulldomain` of its account" : dns.alias;
  return target === undefined
    ? ""
    : `; ${challengeName(name)} has to be a CNAME record that leads to ${target}`;
}

/**
 * Words for the codes of RFC 8555, 6.7, RFC 9773, 7.4 and draft-ietf-acme-profiles, and for Portico's own, which come last.
 */
const WORDS: Readonly<Record<string, RefusalWords>> = {
  ...DNS_WORDS,
  connection: {
    what: (port) => `the authority could not connect to port ${port}`,
    fix: ({ name, port }) =>
      `Make port ${port} of this host reachable from the internet as ${name}: check the firewall, the router and the name's A and AAAA records.`,
  },
  dns: {
    what: () => "the authority could not look up the name",
    fix: ({ name }) =>
      `Create an A record for ${name} (and an AAAA record only if this host has IPv6) that points to this host, and check that the name servers respond.`,
  },
  unauthorized: {
    what: () => "the authority did not get the expected proof",
    fix: notOurResponse,
  },
  incorrectResponse: {
    what: () => "the authority did not get the expected proof",
    fix: notOurResponse,
  },
  caa: {
    what: () => "a CAA record forbids this authority",
    fix: ({ name, wanted }) =>
      `Add the authority ${wanted.authority.name} to the CAA records of ${name} or its parent domain, or remove the CAA records.`,
  },
  tls: {
    // RFC 8555, 8.3: an authority follows redirects from port 80.
    what: (port) =>
      port === 443
        ? "the authority's TLS handshake on port 443 failed"
        : "the authority was redirected to https, and its TLS handshake failed",
    fix: ({ wanted }) =>
      wanted.challenge === "tls-alpn-01"
        ? "Remove whatever terminates TLS in front of this host, or use the challenge http-01."
        : "Remove the redirect to https in front of this host, or repair the TLS of the server that it leads to.",
  },
  rateLimited: {
    what: () => "the authority's rate limit is reached",
    fix: () =>
      "Wait: the proxy tries again when the authority allows it. For tests, use the authority's staging directory.",
  },
  rejectedIdentifier: {
    what: () => "the authority does not issue certificates for this name",
    fix: ({ name, wanted }) =>
      `Remove ${name} from the names, or use a certificate from files for it.${
        wanted.authority.profile === undefined ? "" : " Another profile may allow it."
      }`,
  },
  unsupportedIdentifier: {
    what: () => "the authority does not know this kind of name",
    fix: ({ name }) => `Remove ${name} from the names, or use an authority that issues for it.`,
  },
  badCSR: {
    what: () => "the authority refuses the request, often because of its key",
    fix: ({ wanted }) => `Use another keyType than ${wanted.keyType}, or fewer names.`,
  },
  badPublicKey: {
    what: () => "the authority refuses the key",
    fix: ({ wanted }) => `Use another keyType than ${wanted.keyType}.`,
  },
  badSignatureAlgorithm: {
    what: () => "the authority does not accept account keys of type ES256",
    fix: () => "Use another authority: accounts are signed with ES256, which RFC 8555 recommends.",
  },
  externalAccountRequired: {
    what: () => "the authority requires an existing account",
    fix: ({ wanted }) =>
      `Create a key at the authority, and set it as externalAccountBinding of ${wanted.authority.name}.`,
  },
  userActionRequired: {
    what: () => "the authority requires an action of a person, such as accepting new terms",
    fix: ({ instance }) =>
      instance === undefined ? "Log in at the authority, and follow its instructions." : `Visit ${instance}.`,
  },
  notAllowed: {
    what: () => "the authority does not issue this certificate to the account",
    fix: ({ wanted }) =>
      `All names were proved: ask the authority which permission the account of ${wanted.authority.name} lacks. ${RETRIED}`,
  },
  invalidContact: {
    what: () => "the authority refuses the mail address",
    fix: ({ wanted }) => `Set email of ${wanted.authority.name} to an address that receives mail.`,
  },
  unsupportedContact: {
    what: () => "the authority refuses the mail address",
    fix: ({ wanted }) => `Remove email of ${wanted.authority.name}, or use another address.`,
  },
  invalidProfile: {
    what: () => "the authority does not offer the profile for these names",
    fix: ({ wanted }) =>
      `Remove profile of ${wanted.authority.name}, or use a profile that the authority offers.`,
  },
  accountDoesNotExist: {
    what: () => "the authority does not know the account",
    fix: () => `The proxy creates a new account. ${RETRIED}`,
  },
  orderNotReady: { what: () => undefined, fix: () => RETRIED },
  alreadyReplaced: { what: () => undefined, fix: () => RETRIED },
  badNonce: {
    what: () => "the authority refused one request several times",
    fix: () => `${RETRIED} If it persists, ask the authority.`,
  },
  serverInternal: {
    what: () => "the authority failed",
    fix: () => `${RETRIED} If it persists, look at the authority's status page.`,
  },
  malformed: {
    what: () => "the authority does not understand the request",
    fix: ({ wanted }) =>
      `Check that directory of ${wanted.authority.name} is an ACME directory (RFC 8555). ${RETRIED}`,
  },
  unreachable: {
    what: () => "the authority cannot be reached",
    fix: ({ wanted }) =>
      `Let this host open connections to ${wanted.authority.directory}: check DNS, routes and filters of outgoing traffic. ${RETRIED}`,
  },
  untrusted: {
    what: () => "the authority's own certificate is not trusted",
    fix: ({ wanted }) =>
      `For a private authority, set roots of ${wanted.authority.name} to its root certificates; otherwise a device between this host and the authority terminates TLS.`,
  },
  clock: {
    what: () => "the authority's own certificate is not valid at this time",
    fix: () => "Check the clock of this host: timedatectl.",
  },
  badResponse: {
    what: () => undefined,
    fix: ({ wanted }) =>
      `Check that ${wanted.authority.directory} is an ACME directory (RFC 8555), and that no other server responds in its place.`,
  },
  noChallenge: {
    what: () => undefined,
    fix: ({ wanted }) => `Use another challenge than ${wanted.challenge} for ${wanted.authority.name}.`,
  },
  unusableCertificate: {
    what: () => "the authority issued a certificate that cannot be used",
    fix: ({ wanted }) =>
      `Ask the authority why, or use another authority than ${wanted.authority.name}, another keyType or another TLS policy.`,
  },
  timeout: { what: () => undefined, fix: () => `The order stays open. ${RETRIED}` },
  file: {
    what: () => undefined,
    fix: () =>
      "Let the user that runs portico read and write the file, and check the free space of its disk.",
  },
};

function notOurResponse({ name, port }: About): string {
  return `Check that every A and AAAA record of ${name} points to this host, and that no other server responds on port ${port} in its place.`;
}
