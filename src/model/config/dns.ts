import * as z from "zod";
import type { OutputOf } from "../inferred.js";
import { count, directoryUrl, domainName, filePath, ipAddress, MILLISECONDS_MAX, port } from "../fields.js";

/** How the DNS records come about that prove names by the challenge dns-01 (RFC 8555, 8.4). */

export const dnsServer = z.strictObject({
  address: ipAddress("IP address of the server.", "192.0.2.53"),
  port: port("Its port, for UDP and TCP.").default(53),
});

/** What is waited for before the authority is asked. */
const visible = {
  nameServers: z
    .array(dnsServer.describe("An authoritative name server."))
    .max(20)
    .default([])
    .describe(
      "Authoritative name servers, each of which has to show the record before the authority is asked. By default `server` of an " +
        "`rfc2136`, and otherwise none: what a program or an acme-dns server was told counts at once. Nothing else is looked " +
        "up, so that a private view of the DNS does no harm.",
    ),
  waitMs: count(
    120_000,
    1_000,
    3_600_000,
    "milliseconds",
    "How long they may take. After that the authority is not asked, and all is tried again later.",
  ),
};

const alias = domainName(
  "Name that the CNAME records `_acme-challenge.NAME` of all names lead to, by which another zone proves them. By default the records are written to `_acme-challenge.NAME` itself.",
  "proofs.acme.example.net",
).optional();

export const dnsUpdate = z
  .strictObject({
    type: z.literal("rfc2136").describe("The kind."),
    server: dnsServer.describe("The primary server of the zone, which is asked over TCP."),
    zone: domainName("The zone that the records are in.", "example.org"),
    keyFile: filePath(
      "File on the host with the key that signs updates (TSIG, RFC 8945), as `tsig-keygen` writes it: " +
        "`hmac-sha256`, `hmac-sha384` or `hmac-sha512`. Only root has to read it.",
      "/etc/portico/acme-dns.key",
    ),
    alias,
    ttlSeconds: count(60, 1, 86_400, "seconds", "How long resolvers may keep the record."),
    ...visible,
  })
  .describe("A dynamic update (RFC 2136), signed with a key, as BIND, Knot DNS and PowerDNS take it.");

export const dnsProgram = z
  .strictObject({
    type: z.literal("program").describe("The kind."),
    command: filePath(
      "An executable of yours. It is called with `present` or `cleanup`, the record's name and its value as arguments, by the user that runs the proxy; exit status 0 is success.",
      "/usr/local/bin/acme-record",
    ),
    credentialFile: filePath(
      "File with the program's secret, which only root has to read. The program finds it by the environment variable `PORTICO_CREDENTIAL_FILE`.",
      "/etc/portico/dns-token",
    ).optional(),
    timeoutMs: count(
      60_000,
      1_000,
      MILLISECONDS_MAX,
      "milliseconds",
      "How long a call may take; then it is killed.",
    ),
    alias,
    ...visible,
  })
  .describe("A program that writes the record, for whatever a provider offers.");

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
      "PEM file: root certificates by which the server is trusted, and no others; for a private one. Without it, the roots that Node brings.",
      "/etc/portico/acme-dns-roots.pem",
    ).optional(),
    ...visible,
  })
  .describe("An acme-dns server, which the CNAME record `_acme-challenge.NAME` of each name leads to.");

export const dnsProofs = z
  .discriminatedUnion("type", [dnsUpdate, dnsProgram, acmeDns])
  .describe(
    "Who writes the DNS records that prove names by the challenge `dns-01`: for wildcard names, and for names that nobody outside can reach. Secrets stay in files on the host. Without it, names are proved by the proxy's own ports.",
  );

export type DnsProofsConfig = OutputOf<typeof dnsProofs>;
export type DnsProofsOf<T extends DnsProofsConfig["type"]> = Extract<DnsProofsConfig, { readonly type: T }>;
