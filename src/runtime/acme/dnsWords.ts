import { challengeName, type DnsProofsConfig, type WantedCertificate } from "../../model/serving.js";
import { type About, RETRIED, type Words } from "./words.js";

/** What is refused where names are proved by DNS records. */

/** An authority says of a record what it says of a response: that it is not there, or is another one. */
const NOT_PROVED = new Set(["dns", "unauthorized", "incorrectResponse"]);

export const dnsCode = (code: string, { challenge }: Pick<WantedCertificate, "challenge">): string =>
  challenge === "dns-01" && NOT_PROVED.has(code) ? "dnsProof" : code;

export const DNS_WORDS: Readonly<Record<string, Words>> = {
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
