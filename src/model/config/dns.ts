import * as z from "zod";
import type { OutputOf } from "../inferred.js";
import { count, directoryUrl, domainName, filePath, ipAddress, MILLISECONDS_MAX, port } from "../fields.js";

/** How the DNS records come about that prove names by the challenge dns-01 (RFC 8555, 8.4). */

export const dnsServer = z.strictObject({
  address: ipAddress("IP address of the server.", "192.0.2.53"),
  port: port("Its port, for UDP and TCP.").default(53),
});

const nameServers = z.array(dnsServer.describe("An authoritative name server.")).max(20);

/** What happens between a record and the challenge. */
const visible = {
  waitMs: count(
    120_000,
    1_000,
    3_600_000,
    "milliseconds",
    "How long the name servers may take to show the record. After that, the proxy gives up this attempt and " +
      "tries again later.",
  ),
};
const shownBy = (writer: string) =>
  nameServers
    .default([])
    .describe(
      `Authoritative name servers, each of which has to show the record before the proxy asks the authority to validate. Without this field, the proxy continues as soon as ${writer} reports success.`,
    );

const alias = domainName(
  "Name in another zone to which the CNAME records `_acme-challenge.NAME` of all names lead. Without this " +
    "field, the records are written to `_acme-challenge.NAME`.",
  "proofs.acme.example.net",
).optional();

export const dnsUpdate = z
  .strictObject({
    type: z.literal("rfc2136").describe("The kind."),
    server: dnsServer.describe("Primary server of the zone, to which the proxy sends updates over TCP."),
    zone: domainName("Zone of the records.", "example.org"),
    keyFile: filePath(
      "File on the host with the key that signs updates (TSIG, RFC 8945), as `tsig-keygen` writes it: " +
        "`hmac-sha256`, `hmac-sha384` or `hmac-sha512`. Only root has to read it.",
      "/etc/portico/acme-dns.key",
    ),
    alias,
    ttlSeconds: count(60, 1, 86_400, "seconds", "How long resolvers may keep the record."),
    nameServers: nameServers
      .optional()
      .describe(
        "Authoritative name servers, each of which has to show the record before the proxy asks the authority to validate: a private view of the DNS does no harm. Without this field, only `server`.",
      ),
    ...visible,
  })
  .describe("A dynamic update (RFC 2136), signed with a key, as BIND, Knot DNS and PowerDNS take it.");

export const dnsProgram = z
  .strictObject({
    type: z.literal("program").describe("The kind."),
    command: filePath(
      "Your own executable. The proxy calls it with `present` or `cleanup`, the name of the record and its " +
        "value as arguments, as the user that runs the proxy; exit status 0 means success.",
      "/usr/local/bin/acme-record",
    ),
    credentialFile: filePath(
      "File with the secret of the program; only root has to be able to read the file. The program gets its " +
        "path in the environment variable `PORTICO_CREDENTIAL_FILE`.",
      "/etc/portico/dns-token",
    ).optional(),
    timeoutMs: count(
      60_000,
      1_000,
      MILLISECONDS_MAX,
      "milliseconds",
      "How long a call may take; then the proxy kills the program.",
    ),
    alias,
    nameServers: shownBy("the program"),
    ...visible,
  })
  .describe("A program that writes the record, for providers without another interface.");

export const acmeDns = z
  .strictObject({
    type: z.literal("acme-dns").describe("The kind."),
    url: directoryUrl("URL of the acme-dns server.", "https://auth.example.net"),
    accountsFile: filePath(
      "File on the host with the server's response to a registration: JSON with `username`, `password`, " +
        '`fulldomain` and `subdomain`; or several of them by name: `{ "example.org": { … } }`. Only root has to read ' +
        "it.",
      "/etc/portico/acme-dns.json",
    ),
    roots: filePath(
      "PEM file with the only root certificates that the proxy trusts for this server; for a private server. " +
        "Without this field, Node's root certificates.",
      "/etc/portico/acme-dns-roots.pem",
    ).optional(),
    nameServers: shownBy("the server"),
    ...visible,
  })
  .describe("An acme-dns server, which the CNAME record `_acme-challenge.NAME` of each name leads to.");

export const dnsProofs = z
  .discriminatedUnion("type", [dnsUpdate, dnsProgram, acmeDns])
  .describe(
    "How the DNS records are written that prove names by the challenge `dns-01`: for wildcard names, and for " +
      "names that the authority cannot reach. Secrets stay in files on the host. Without this field, the ports " +
      "of the proxy prove names.",
  );

export type DnsProofsConfig = OutputOf<typeof dnsProofs>;
export type DnsProofsOf<T extends DnsProofsConfig["type"]> = Extract<DnsProofsConfig, { readonly type: T }>;
