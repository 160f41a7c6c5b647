import * as z from "zod";
import type { OutputOf } from "../schema/inferred.js";
import {
  count,
  directoryUrl,
  domainName,
  programPath,
  ipAddress,
  MILLISECONDS_MAX,
  port,
  rootsFile,
  secretFile,
} from "../schema/fields.js";

/** How the DNS records come about that prove names by the challenge dns-01 (RFC 8555, 8.4). */

export const dnsServer = z.strictObject({
  address: ipAddress("IP address of the server.", "192.0.2.53"),
  port: port("UDP and TCP port of the server.").default(53),
});

const servers = z.array(dnsServer.describe("An authoritative name server.")).max(20);

const SHOWN =
  "Authoritative name servers that must all show the record before Portico asks the authority to validate. Portico " +
  "queries no other servers, so a private view of the DNS does no harm.";

/** If there are no name servers, the writer of the record is believed. */
const serversAfter = (writer: string) =>
  servers
    .default([])
    .describe(`${SHOWN} Without any, Portico continues as soon as ${writer} reports success.`);

const wait = {
  waitMs: count(
    120_000,
    1_000,
    3_600_000,
    "milliseconds",
    "How long the name servers may take to show the record. After that Portico gives up and retries " +
      "later.",
  ),
};

const alias = domainName(
  "Name that the CNAME record `_acme-challenge.NAME` of each name points to, so that the proof is " +
    "in another zone. Default: the records are written to `_acme-challenge.NAME`.",
  "proofs.acme.example.net",
).optional();

export const dnsUpdate = z
  .strictObject({
    type: z.literal("rfc2136").describe("Kind of proof."),
    server: dnsServer.describe("The primary server of the zone, which gets updates over TCP."),
    zone: domainName("Zone of the records.", "example.org"),
    keyFile: secretFile(
      "File on the host with the key that signs updates (TSIG, RFC 8945), in the format of " +
        "`tsig-keygen`: `hmac-sha256`, `hmac-sha384` or `hmac-sha512`.",
      "/etc/portico/acme-dns.key",
    ),
    alias,
    ttlSeconds: count(60, 1, 86_400, "seconds", "How long resolvers may keep the record."),
    nameServers: servers.optional().describe(`${SHOWN} Default: \`server\`.`),
    ...wait,
  })
  .describe("Dynamic updates (RFC 2136), signed with a key; BIND, Knot DNS and PowerDNS accept them.");

export const dnsProgram = z
  .strictObject({
    type: z.literal("program").describe("Kind of proof."),
    command: programPath(
      "Your executable. The proxy's user runs it with three arguments: `present` or `cleanup`, the " +
        "name of the record, and its value. Exit status 0 means success.",
      "/usr/local/bin/acme-record",
    ),
    credentialFile: secretFile(
      "File with the program's secret. `PORTICO_CREDENTIAL_FILE` in the program's environment contains the path to " +
        "read.",
      "/etc/portico/dns-token",
    ).optional(),
    timeoutMs: count(
      60_000,
      1_000,
      MILLISECONDS_MAX,
      "milliseconds",
      "How long a call may take; then the program is killed.",
    ),
    alias,
    nameServers: serversAfter("the program"),
    ...wait,
  })
  .describe("A program that writes the record, for any DNS provider.");

export const acmeDns = z
  .strictObject({
    type: z.literal("acme-dns").describe("Kind of proof."),
    url: directoryUrl("URL of the acme-dns server.", "https://auth.example.net"),
    accountsFile: secretFile(
      "File on the host with the server's response to a registration: JSON with `username`, " +
        "`password`, `fulldomain` and `subdomain`, or an object with one such response per domain name: " +
        '`{ "example.org": { … } }`.',
      "/etc/portico/acme-dns.json",
    ),
    roots: rootsFile("the acme-dns server", "/etc/portico/acme-dns-roots.pem").optional(),
    nameServers: serversAfter("the acme-dns server"),
    ...wait,
  })
  .describe("An acme-dns server; the CNAME record `_acme-challenge.NAME` of each name points to it.");

/** @param publishMs how long the provider takes to publish a record on all its name servers */
const api = <const T extends string>(type: T, title: string, publishMs: number, unless = "") =>
  z
    .strictObject({
      type: z.literal(type).describe("Kind of proof."),
      tokenFile: secretFile(
        "File on the host with the provider's API token, on one line.",
        "/etc/portico/dns-token",
      ),
      alias,
      publishMs: count(
        publishMs,
        0,
        3_600_000,
        "milliseconds",
        `How long Portico waits for the provider to publish a record before it asks the authority to validate${unless}.`,
      ),
      url: directoryUrl(
        "URL of the API. Default: the provider's own.",
        "https://dns.example.net/api/v1",
      ).optional(),
      roots: rootsFile("the API", "/etc/portico/dns-api-roots.pem").optional(),
      nameServers: servers.default([]).describe(`${SHOWN} Without any, Portico waits for \`publishMs\`.`),
      ...wait,
    })
    .describe(`The API of ${title}, by requests of the proxy.`);

const UNLESS_SHOWN = ", unless `nameServers` show the record";

/** Providers whose own API writes the records; `runtime/acme/dnsApis.ts` says how. */
export const cloudflare = api("cloudflare", "Cloudflare", 15_000, UNLESS_SHOWN);
export const desec = api("desec", "deSEC", 80_000, UNLESS_SHOWN);
export const duckdns = api("duckdns", "DuckDNS", 75_000);
export const hetzner = api("hetzner", "Hetzner", 30_000, UNLESS_SHOWN);

export const dnsProofs = z
  .discriminatedUnion("type", [dnsUpdate, cloudflare, desec, duckdns, hetzner, dnsProgram, acmeDns])
  .describe(
    "How the proxy writes the DNS records of the challenge `dns-01`, for wildcard names and for " +
      "names that the authority cannot reach. Secrets stay in files on the host. Without this field, " +
      "the proxy proves names on its own ports.",
  );

export type DnsProofsConfig = OutputOf<typeof dnsProofs>;
export type DnsProofsOf<T extends DnsProofsConfig["type"]> = Extract<DnsProofsConfig, { readonly type: T }>;
export type DnsApiConfig = DnsProofsOf<"cloudflare" | "desec" | "duckdns" | "hetzner">;
export type DnsApiName = DnsApiConfig["type"];
