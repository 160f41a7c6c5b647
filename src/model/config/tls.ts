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
  rootsFile,
} from "../schema/fields.js";
import { dnsProofs } from "./dns.js";
import { KEY_TYPES, TLS_POLICIES, type TlsPolicyName } from "../net/tlsPolicy.js";

/** TLS fields: a listener's policy, and the sources of its certificates. */

/** A policy spelled out. */
export const tlsPolicyFields = z.strictObject({
  minVersion: z.enum(["TLSv1.2", "TLSv1.3"]).describe("Lowest protocol version."),
  maxVersion: z
    .enum(["TLSv1.2", "TLSv1.3"])
    .meta({ description: "Highest protocol version; not below the lowest.", examples: ["TLSv1.3"] }),
  ciphers: cipherString(
    "OpenSSL cipher string: names joined by `:`, TLS 1.3 suites by their full names.",
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
    "TLS policy of the listener: the name of a policy, or its settings. Named policies, except " +
      "`file-sync`, begin with `X25519MLKEM768` if the host's OpenSSL supports this group; settings " +
      "are used exactly as given.",
  );

/** Names in one certificate: the limit of public authorities. */
const NAMES_MAX = 100;

export const acmeCertificate = z
  .strictObject({
    authority: name("Name of the certificate authority, one of `certificateAuthorities`.", "letsencrypt"),
    names: z
      .array(
        publicName(
          "A name or address that clients use. A name with `*` requires the challenge `dns-01`.",
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
        "Type of the certificate's key; the policy's ciphers must support this type. Default: " +
          "`ecdsa-p256`, or `rsa-2048` if the policy's ciphers exclude ECDSA, as in `file-sync`.",
      ),
  })
  .describe("A certificate that the proxy obtains and renews by ACME (RFC 8555), in place of files.");

/** The source of a certificate: files, or an authority. */
const source = {
  certificate: filePath(
    "PEM file with the server's certificate, followed by its chain.",
    "/etc/portico/tls/cacert.pem",
  ).optional(),
  key: filePath("PEM file with the unencrypted private key.", "/etc/portico/tls/privkey.pem").optional(),
  acme: acmeCertificate.optional(),
};

export const tls = z
  .strictObject({
    ...source,
    certificates: z
      .array(z.strictObject(source))
      .default([])
      .describe(
        "Further certificates, each from files or by `acme`. A client gets the certificate that covers " +
          "its SNI name; without SNI or a match, the certificate of `tls` itself.",
      ),
    dhparam: filePath(
      "PEM file with Diffie-Hellman parameters of at least 2048 bits for DHE suites.",
      "/etc/portico/tls/dhparam2048.pem",
    ).optional(),
    policy: tlsPolicy.default("file-sync"),
  })
  .describe(
    "TLS certificates and policy; required for `https`, refused for `http`. Give either " +
      "`certificate` and `key`, or `acme`.",
  );

export const upstreamTls = z
  .strictObject({
    caFile: rootsFile(
      "the upstream",
      "/etc/portico/app-roots.pem",
      " or a self-signed certificate",
    ).optional(),
    serverName: certifiedName(
      "Name or address that the upstream's certificate must cover; a name is also sent as SNI. " +
        "Default: the host of the server's URL.",
      "app.internal",
    ).optional(),
    certificateFile: filePath(
      "PEM file with the proxy's client certificate, followed by its chain.",
      "/etc/portico/client.pem",
    ).optional(),
    privateKeyFile: filePath(
      "PEM file with the unencrypted private key of `certificateFile`.",
      "/etc/portico/client.key",
    ).optional(),
    verify: flag(
      true,
      "Whether the proxy verifies the upstream's certificate. `false` accepts any server at the " +
        "address, which can read and change all traffic, and causes a warning. Prefer `caFile` with the " +
        "upstream's root certificate.",
    ),
  })
  .describe(
    "TLS 1.2 and 1.3, with HTTP/1.1, to an upstream with an `https` URL. Without this field, the certificate must " +
      "come from an authority that Node trusts and cover the host of `url`.",
  );

/** Half a day: a stolen key then opens no more than half a day of recorded sessions. */
const ROTATE_MS = 43_200_000;

export const ticketKeys = z
  .strictObject({
    file: filePath(
      "File with the secret from which the keys are derived: base64 text of at least 32 bytes, such as " +
        "the output of `openssl rand -base64 48`. Keep the file as private as a TLS key.",
      "/etc/portico/ticket-secret",
    ),
    rotateMs: count(
      ROTATE_MS,
      1_000,
      MILLISECONDS_MAX,
      "milliseconds",
      "How long each key is used. All proxies that share the secret change keys at the same time, by " +
        "their clocks.",
    ),
  })
  .describe(
    "Keys of TLS session tickets that several hosts or pods share, so that clients can resume " +
      "sessions with any of them. Without this field, each proxy generates its own keys.",
  );

export const CHALLENGES = ["http-01", "tls-alpn-01", "dns-01"] as const;
export type ChallengeType = (typeof CHALLENGES)[number];

/** The default authority: its certificates are trusted everywhere and are free. */
export const DEFAULT_DIRECTORY = "https://acme-v02.api.letsencrypt.org/directory";

export const externalAccountBinding = z.strictObject({
  keyId: line("Id of the key, as issued by the authority.", "kid-1"),
  keyFile: filePath(
    "File on the host with the MAC key, in base64url as issued by the authority; only root needs to " +
      "read the file.",
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
    "Address for messages of the authority about the account, if it sends any.",
    "admin@example.org",
  ).optional(),
  agreeToTerms: flag(false, "Whether you agree to the authority's terms of service; must be `true`."),
  profile: name(
    "Profile of the certificates, by the authority's name for it. Default: `shortlived` if a name is " +
      "an IP address and the authority offers this profile; otherwise the authority's choice.",
    "shortlived",
  ).optional(),
  challenge: z
    .enum(CHALLENGES)
    .optional()
    .describe(
      "How names are proved. `http-01`: by a response on port 80. `tls-alpn-01`: by a TLS handshake on " +
        "port 443. The authority must reach this port under each name. `dns-01`: by a DNS record, also " +
        "for wildcard names and names that the authority cannot reach. Default: `dns-01` with `dns`; " +
        "otherwise `http-01` if clients reach an `http` listener on port 80; otherwise `tls-alpn-01`.",
    ),
  dns: dnsProofs.optional(),
  externalAccountBinding: externalAccountBinding
    .optional()
    .describe("Key that binds the ACME account to an existing account at the authority (RFC 8555, 7.3.4)."),
  holderAddress: ipAddress(
    "Address that moves between hosts with the same certificates: the proxy requests certificates " +
      "only while its host has the address. Until then the proxy serves certificates that are copied " +
      "into its state directory. Without this field, every due certificate is requested.",
    "192.0.2.20",
  ).optional(),
  roots: rootsFile("the connection to the authority", "/etc/portico/acme-roots.pem").optional(),
});

/** The options of an authority in `acme` of a stack; the other fields follow from the stack. */
export const authorityOptions = certificateAuthority.omit({ name: true, holderAddress: true });
