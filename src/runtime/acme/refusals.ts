import { printableValue } from "../../model/printable.js";
import type { AcmeError, AcmeProblem } from "./acmeError.js";
import type { WantedCertificate as Wanted } from "../../model/serving.js";
import type { AcmeFailure, OrderedCertificate } from "./acmeHost.js";
import { DNS_WORDS, dnsCode } from "./dnsWords.js";
import { type About, RETRIED, type Words } from "./words.js";

/** What an authority refused, in words that say what to do. */

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

/** What to do about a failure that another process tells of, in words of this one. */
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
const wordsOf = (code: string): Words | undefined => (Object.hasOwn(WORDS, code) ? WORDS[code] : undefined);

const portOf = ({ challenge }: Wanted): number => (challenge === "http-01" ? 80 : 443);

/** By the types of RFC 8555, 6.7, RFC 9773, 7.4 and the profiles of draft-ietf-acme-profiles; the last are ours. */
const WORDS: Readonly<Record<string, Words>> = {
  ...DNS_WORDS,
  connection: {
    what: (port) => `the authority could not connect to port ${port}`,
    fix: ({ name, port }) =>
      `Let the internet reach port ${port} of this host by ${name}: check firewall, router and the name's A and AAAA records.`,
  },
  dns: {
    what: () => "the authority could not look up the name",
    fix: ({ name }) =>
      `Give ${name} an A record (and AAAA only if this host has IPv6) that leads to this host, and check that its name servers answer.`,
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
      `Let the CAA record of ${name} or its parent name the authority ${wanted.authority.name}, or remove the record.`,
  },
  tls: {
    // RFC 8555, 8.3: an authority follows redirects from port 80.
    what: (port) =>
      port === 443
        ? "the authority's TLS handshake on port 443 failed"
        : "the authority was redirected to https, and its TLS handshake failed",
    fix: ({ wanted }) =>
      wanted.challenge === "tls-alpn-01"
        ? "Let nothing end TLS in front of this host, or use the challenge http-01."
        : "Remove redirects to https that something in front of this host makes, or repair its TLS.",
  },
  rateLimited: {
    what: () => "the authority's rate limit is reached",
    fix: () =>
      "Wait: it is tried again when the authority allows it. To try things out, use the authority's staging directory.",
  },
  rejectedIdentifier: {
    what: () => "the authority does not issue certificates for this name",
    fix: ({ name, wanted }) =>
      `Remove ${name} from the names, or get its certificate elsewhere and bring it as files.${
        wanted.authority.profile === undefined ? "" : " Another profile may allow it."
      }`,
  },
  unsupportedIdentifier: {
    what: () => "the authority does not know this kind of name",
    fix: ({ name }) => `Remove ${name} from the names, or use an authority that issues for it.`,
  },
  badCSR: {
    what: () => "the authority refuses the request, often because of its key",
    fix: ({ wanted }) => `Give another keyType than ${wanted.keyType}, or fewer names.`,
  },
  badPublicKey: {
    what: () => "the authority refuses the key",
    fix: ({ wanted }) => `Give another keyType than ${wanted.keyType}.`,
  },
  badSignatureAlgorithm: {
    what: () => "the authority does not take account keys of type ES256",
    fix: () => "Use another authority: accounts are signed with ES256, which RFC 8555 recommends.",
  },
  externalAccountRequired: {
    what: () => "the authority requires an account that was registered there before",
    fix: ({ wanted }) =>
      `Create a key at the authority, and give it as externalAccountBinding of ${wanted.authority.name}.`,
  },
  userActionRequired: {
    what: () => "the authority requires a person to act, for instance to accept new terms",
    fix: ({ instance }) =>
      instance === undefined ? "Log in at the authority, and do what it asks for." : `Visit ${instance}.`,
  },
  notAllowed: {
    what: () => "the authority does not allow the account this certificate",
    fix: ({ wanted }) =>
      `Ask the authority what the account of ${wanted.authority.name} lacks: all names were proved. ${RETRIED}`,
  },
  invalidContact: {
    what: () => "the authority refuses the mail address",
    fix: ({ wanted }) => `Give a mail address that receives mail as email of ${wanted.authority.name}.`,
  },
  unsupportedContact: {
    what: () => "the authority refuses the mail address",
    fix: ({ wanted }) => `Leave email of ${wanted.authority.name} out, or give another address.`,
  },
  invalidProfile: {
    what: () => "the authority does not offer the profile for these names",
    fix: ({ wanted }) =>
      `Leave profile of ${wanted.authority.name} out, or give one that the authority offers.`,
  },
  accountDoesNotExist: {
    what: () => "the authority does not know the account",
    fix: () => `A new account is made. ${RETRIED}`,
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
      `Let this host open connections to ${wanted.authority.directory}: check DNS, routes and what filters outgoing traffic. ${RETRIED}`,
  },
  untrusted: {
    what: () => "the authority's own certificate is not trusted",
    fix: ({ wanted }) =>
      `For a private authority, give its root certificates as roots of ${wanted.authority.name}; otherwise something between this host and the authority ends TLS.`,
  },
  clock: {
    what: () => "the authority's own certificate is not valid at this time",
    fix: () => "Check the clock of this host: timedatectl.",
  },
  badResponse: {
    what: () => undefined,
    fix: ({ wanted }) =>
      `Check that ${wanted.authority.directory} is an ACME directory (RFC 8555), and that nothing answers in its place.`,
  },
  noChallenge: {
    what: () => undefined,
    fix: ({ wanted }) => `Give another challenge than ${wanted.challenge} for ${wanted.authority.name}.`,
  },
  unusableCertificate: {
    what: () => "the authority issued a certificate that cannot be used",
    fix: ({ wanted }) =>
      `Ask the authority why, or use another one than ${wanted.authority.name}, another keyType or another TLS policy.`,
  },
  timeout: { what: () => undefined, fix: () => `The order stays open. ${RETRIED}` },
  file: {
    what: () => undefined,
    fix: () => "Let the user that runs portico read and write it, and check the free space of its disk.",
  },
};

function notOurResponse({ name, port }: About): string {
  return `Check that ${name} leads to this host by every A and AAAA record, and that nothing in front of it answers on port ${port} in its place.`;
}
