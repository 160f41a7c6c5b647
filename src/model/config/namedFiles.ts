import type { NotificationTargetConfig } from "./config.js";
import type { DnsProofsConfig } from "./dns.js";

/** Files that parts of a config name: those whose contents a part needs, and the same part with its files elsewhere. */

type Files = Readonly<Record<string, string>>;

/** Whatever is no path is left out: a config that is being checked may have anything there. */
const filesOf =
  <Field extends string>(...fields: readonly Field[]) =>
  (part: Readonly<Partial<Record<Field, unknown>>> | undefined): Files =>
    Object.fromEntries(
      fields.flatMap((field) => {
        const file = part?.[field];
        return typeof file === "string" ? [[field, file] as const] : [];
      }),
    );

const elsewhere = (files: Files, moved: (path: string) => string): Files =>
  Object.fromEntries(Object.entries(files).map(([field, path]) => [field, moved(path)]));

/** Files that proofs by DNS need, by field. */
export const dnsFiles = filesOf("keyFile", "credentialFile", "accountsFile", "tokenFile", "roots");

export const withDnsFiles = (dns: DnsProofsConfig, moved: (path: string) => string): DnsProofsConfig => ({
  ...dns,
  ...(dns.type === "program" ? { command: moved(dns.command) } : {}),
  ...elsewhere(dnsFiles(dns), moved),
});

/** Files that a target of notifications needs, by field. */
export const notificationFiles = filesOf("urlFile", "tokenFile", "roots");

export const withNotificationFiles = (
  target: NotificationTargetConfig,
  moved: (path: string) => string,
): NotificationTargetConfig => ({ ...target, ...elsewhere(notificationFiles(target), moved) });
