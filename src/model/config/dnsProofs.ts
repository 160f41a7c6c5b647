import type { DnsProofsConfig } from "./dns.js";

const FILE_FIELDS = ["keyFile", "credentialFile", "accountsFile", "roots"] as const;

/** Files whose contents it needs, by field. */
export const dnsFiles = (dns: Partial<Record<(typeof FILE_FIELDS)[number], unknown>> | undefined) =>
  Object.fromEntries(
    FILE_FIELDS.flatMap((field) => {
      const file = dns?.[field];
      return typeof file === "string" ? [[field, file] as const] : [];
    }),
  );

/** The same with its paths elsewhere. */
export const withDnsFiles = (dns: DnsProofsConfig, moved: (path: string) => string): DnsProofsConfig => ({
  ...dns,
  ...(dns.type === "program" ? { command: moved(dns.command) } : {}),
  ...Object.fromEntries(Object.entries(dnsFiles(dns)).map(([field, path]) => [field, moved(path)])),
});

/** The name below which an authority looks for the proof of a name (RFC 8555, 8.4). */
export const challengeName = (name: string): string => `_acme-challenge.${name.replace(/^\*\./, "")}`;
