import * as z from "zod";
import {
  certifiedName,
  cipherString,
  count,
  filePath,
  flag,
  directoryUrl,
  ipAddress,
  line,
  mailAddress,
  MILLISECONDS_MAX,
  name,
  publicName,
} from "../fields.js";
import { dnsProofs } from "./dns.js";
import { KEY_TYPES, TLS_POLICIES, type TlsPolicyName } from "../tlsPolicy.js";

/** Fields of TLS: what a listener negotiates, and where its certificates come from. */

/** A policy spelled out. */
export const tlsPolicyFields = z.strictObject({
  minVersion: z.enum(["TLSv1.2", "TLSv1.3"]).describe("Lowest protocol version."),
  maxVersion: z
    .enum(["TLSv1.2", "TLSv1.3"])
    .meta({ description: "Highest protocol version; not below the lowest.", examples: ["TLSv1.3"] }),
  ciphers: cipherString(
    "OpenSSL cipher string, names joined by `:`; TLS 1.3 suites by their full names.",
    "ECDHE+AESGCM:TLS_AES_128_GCM_SHA256",
  ),
  curves: z
    .array(name("A curve, by its OpenSSL name.", "prime256v1"))
    .min(1)
    .meta({
      description: "Key exchange groups, by their OpenSSL names, best first.",
      examples: [["X25519", "prime256v1"]],
    }),
  preferServerCiphers: flag(true, "Whether the server's cipher order takes priority."),
  sessionTimeoutSeconds: count(600, 1, 604_800, "seconds", "Lifetime of a session ticket."),
});

const tlsPolicy = z
  .union([z.enum(Object.keys(TLS_POLICIES) as [TlsPolicyName, ...TlsPolicyName[]]), tlsPolicyFields])
  .describe(
    "What the listener negotiates: the name of a policy, or a policy spelled out. Policies by name, except `file-sync`, begin with `X25519MLKEM768` where the host's OpenSSL knows it; one that is spelled out is taken to the letter.",
  );

/** Names in one certificate: the limit of public authorities. */
const NAMES_MAX = 100;

export const acmeCertificate = z
  .strictObject({
    authority: name("Name of the certificate authority, one of `certificateAuthorities`.", "letsencrypt"),
    names: z
      .array(
        publicName(
          "A name or address that clients use. Only the challenge `dns-01` proves a name with `*`.",
          "files.example.org",
        ),
      )
      .min(1)
      .max(NAMES_MAX)
      .meta({
        description: "Names and addresses that the certificate covers, the main one first.",
        examples: [["files.example.org"]],
      }),
    keyType: z
      .enum(KEY_TYPES)
      .optional()
      .describe(
        "Type of the certificate's key. By default `ecdsa-p256`, and `rsa-2048` where the ciphers of the policy exclude ECDSA, as those of `file-sync` do. The policy's ciphers must support it.",
      ),
  })
  .describe("A certificate that the proxy obtains and renews by ACME (RFC 8555), in place of files.");

/** Where a certificate comes from: files, or an authority. */
const source = {
  certificate: filePath(
    "PEM file: the server's certificate, then its chain.",
    "/etc/portico/tls/cacert.pem",
  ).optional(),
  key: filePath("PEM file: the private key, not encrypted.", "/etc/portico/tls/privkey.pem").optional(),
  acme: acmeCertificate.optional(),
};

export const tls = z
  .strictObject({
    ...source,
    certificates: z
      .array(z.strictObject(source))
      .default([])
      .describe(
        "Further certificates, each from files or by `acme`. A client gets the certificate that covers the " +
          "requested name, and the certificate above if none covers the name, or if the client requests no name.",
      ),
    dhparam: filePath(
      "PEM file: Diffie-Hellman parameters for DHE suites, of at least 2048 bits.",
      "/etc/portico/tls/dhparam2048.pem",
    ).optional(),
    policy: tlsPolicy.default("file-sync"),
  })
  .describe(
    "TLS material and policy; required for `https`, refused for `http`. Give `certificate` and `key`, or `acme`.",
  );

export const upstreamTls = z
  .strictObject({
    caFile: filePath(
      "PEM file on the host with the only root certificates that the proxy trusts for this upstream; for a " +
        "private authority, or a self-signed certificate. Without this field, Node's root certificates.",
      "/etc/portico/app-roots.pem",
    ).optional(),
    serverName: certifiedName(
      "Name or address that the certificate has to be valid for; the proxy also sends a name as SNI. Without " +
        "this field, the host of the server's URL.",
      "app.internal",
    ).optional(),
    certificateFile: filePath(
      "PEM file with the client certificate of the proxy, followed by its chain, for an upstream that demands " +
        "a certificate.",
      "/etc/portico/client.pem",
    ).optional(),
    privateKeyFile: filePath(
      "PEM file with the unencrypted private key of `certificateFile`.",
      "/etc/portico/client.key",
    ).optional(),
    verify: flag(
      true,
      "Whether the upstream has to prove its identity. `false` accepts any server at the address, which can " +
        "read and change everything, and causes a warning: set `caFile` to the upstream's root certificate " +
        "instead.",
    ),
  })
  .describe(
    "TLS to an upstream at an `https` URL, versions 1.2 and 1.3. Without it, its certificate has to be from an authority that Node knows, and for the host of `url`.",
  );

/** Half a day: a stolen key then opens no more than half a day of recorded sessions. */
const ROTATE_MS = 43_200_000;

export const ticketKeys = z
  .strictObject({
    file: filePath(
      "File with the secret from which the keys are derived: base64 text of at least 32 bytes, as `openssl " +
        "rand -base64 48` writes it. Keep the file as private as a TLS key.",
      "/etc/portico/ticket-secret",
    ),
    rotateMs: count(
      ROTATE_MS,
      1_000,
      MILLISECONDS_MAX,
      "milliseconds",
      "How long each key is used. All proxies that share the secret change keys at the same moment, by their " +
        "clocks.",
    ),
  })
  .describe(
    "Keys of TLS session tickets that several hosts or pods share, so that a client resumes its session with " +
      "any of them. Without this field, every proxy makes its own keys.",
  );

export const CHALLENGES = ["http-01", "tls-alpn-01", "dns-01"] as const;
export type ChallengeType = (typeof CHALLENGES)[number];

/** The default authority: its certificates are trusted everywhere and are free. */
export const DEFAULT_DIRECTORY = "https://acme-v02.api.letsencrypt.org/directory";

export const externalAccountBinding = z.strictObject({
  keyId: line("The key's id, as the authority gave it.", "kid-1"),
  keyFile: filePath(
    "File on the host with the MAC key, in base64url as the authority gave it; only root has to read it.",
    "/etc/portico/acme-eab.key",
  ),
});

export const certificateAuthority = z.strictObject({
  name: name("Name by which certificates refer to the authority.", "letsencrypt"),
  directory: directoryUrl(
    "URL of the authority's ACME directory (RFC 8555).",
    "https://ca.example.org/acme/acme/directory",
  ).default(DEFAULT_DIRECTORY),
  email: mailAddress(
    "Mail address to which the authority sends messages about the account, if the authority sends any.",
    "admin@example.org",
  ).optional(),
  agreeToTerms: flag(false, "Whether you agree to the authority's terms of service; must be `true`."),
  profile: name(
    "Profile of the certificates, by the name that the authority uses. By default `shortlived`, if a name is " +
      "an IP address and the authority offers this profile, and otherwise the authority's choice.",
    "shortlived",
  ).optional(),
  challenge: z
    .enum(CHALLENGES)
    .optional()
    .describe(
      "How the proxy proves its control of names. `http-01`: by a response on port 80. `tls-alpn-01`: by a " +
        "handshake on port 443. For these two, the authority must reach the port by every name. `dns-01`: by a " +
        "DNS record, also for wildcard names and for names that the authority cannot reach. By default `dns-01` " +
        "with `dns`, `http-01` if clients reach an http listener on port 80, and `tls-alpn-01` otherwise.",
    ),
  dns: dnsProofs.optional(),
  externalAccountBinding: externalAccountBinding
    .optional()
    .describe("A key that binds the account to your account at the authority (RFC 8555, 7.3.4)."),
  holderAddress: ipAddress(
    "Address that moves between hosts with the same certificates: the proxy asks the authority for " +
      "certificates only while its host has the address. Otherwise the proxy serves certificates that are " +
      "copied into its state directory. Without this field, the proxy asks the authority whenever a " +
      "certificate is due.",
    "192.0.2.20",
  ).optional(),
  roots: filePath(
    "PEM file with the only root certificates that the proxy trusts for connections to the authority; for a " +
      "private authority. Without this field, Node's root certificates.",
    "/etc/portico/acme-roots.pem",
  ).optional(),
});

/** What `acme` of a stack takes of an authority; the rest follows from the stack. */
export const authorityOptions = certificateAuthority.omit({ name: true, holderAddress: true });
