import { generateKeyPairSync } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import "../../reflectMetadata.js";
import * as x509 from "@peculiar/x509";
import type { Problem } from "../../../src/model/index.js";
import { loadConfig } from "../../../src/runtime/index.js";
import type { ErrorEntry } from "./entry.js";

/** Files of a host by path, as far as `portico check` looks at them. */
type Files = Record<string, { readonly text: string; readonly mode?: number } | "directory">;

const CERTIFICATE = "/etc/portico/tls/cacert.pem";
const KEY = "/etc/portico/tls/privkey.pem";
const DHPARAM = "/etc/portico/tls/dhparam2048.pem";
const TICKET_SECRET = "/etc/portico/ticket-secret";
const NOTIFY_URL = "/etc/portico/notify-url";
const DENIED = "/etc/portico/denied.txt";
const USERS = "/etc/portico/users";
const CLIENTS = "/etc/portico/clients-ca.pem";
const REVOKED = "/etc/portico/clients-crl.pem";
const LOG = "/var/log/portico/access.log";
const MEDIA = "/srv/files/media";

/** A config whose files are all there. */
const config = (tls: object, more: object, server: object) => ({
  version: 1,
  ...more,
  logs: { access: { path: LOG } },
  listeners: [
    {
      name: "https",
      address: "0.0.0.0",
      port: 443,
      protocol: "https",
      tls: { certificate: CERTIFICATE, key: KEY, policy: "mozilla-intermediate", ...tls },
    },
  ],
  virtualServers: [
    {
      name: "application",
      serverNames: ["files.example.org"],
      listeners: ["https"],
      default: true,
      ...server,
      routes: [{ name: "media", path: "/media", action: { type: "staticFiles", directory: MEDIA } }],
    },
  ],
});

interface Site {
  readonly files: Files;
  /** A certificate for the key with another name or other dates. */
  certify(name: string, from: string, to: string): Promise<string>;
  /** A certificate for the key that may sign others. */
  authority(): Promise<string>;
  /** A list of revoked certificates that the key has signed. */
  revocations(from: string, to: string): Promise<string>;
}

/** The problem that a check finds on a host that is correct except for one change. */
function checked(
  code: string,
  change: (site: Site) => unknown,
  tls: object = {},
  more: object = {},
  server: object = {},
): ErrorEntry["example"] {
  return async () => {
    const root = mkdtempSync(path.join(tmpdir(), "portico-docs-"));
    try {
      const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
      const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
      const keys = { privateKey, publicKey };
      const certify = (name: string, from: string, to: string) => certificate(keys, name, from, to);
      const authority = () => certificate(keys, "Clients", "2020-01-01", "2099-01-01", true);
      const revocations = (from: string, to: string) => revocationList(keys, from, to);
      const valid = await certify("files.example.org", "2020-01-01", "2099-01-01");
      const files: Files = {
        [CERTIFICATE]: { text: valid },
        [KEY]: { text: pem, mode: 0o600 },
        "/var/log/portico": "directory",
        [MEDIA]: "directory",
      };
      await change({ files, certify, authority, revocations });
      writeBelow(root, files);
      const file = path.join(root, "portico.json");
      writeFileSync(file, JSON.stringify(config(tls, more, server)));
      const loaded = await loadConfig({ file, root });
      const found = (loaded.ok ? loaded.value.warnings : loaded.problems).find((p) => p.code === code);
      if (found === undefined) throw new Error(`the example of ${code} has no such problem`);
      return elsewhere(found, root);
    } finally {
      rmSync(root, { recursive: true });
    }
  };
}

/** The same where clients need certificates. */
const asking = (code: string, change: (site: Site) => unknown): ErrorEntry["example"] =>
  checked(code, change, {}, {}, { clientCertificate: { ca: CLIENTS, crl: REVOKED } });

function writeBelow(root: string, files: Files): void {
  for (const [name, file] of Object.entries(files)) {
    const target = path.join(root, name);
    mkdirSync(file === "directory" ? target : path.dirname(target), { recursive: true });
    if (file === "directory") continue;
    writeFileSync(target, file.text);
    chmodSync(target, file.mode ?? 0o644);
  }
}

/** The problem as it is on a host: without the folder of the example, today's date and this machine's OpenSSL. */
function elsewhere(found: Problem, root: string): Problem {
  const text = JSON.stringify(found)
    .replaceAll(root, "")
    .replaceAll(process.versions.openssl, "3.5.4")
    .replace(/but the time is [^"]+Z/, "but the time is 2026-01-05T08:00:00.000Z");
  return JSON.parse(text) as Problem;
}

interface Keys {
  readonly privateKey: KeyLike;
  readonly publicKey: KeyLike;
}

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };

async function certificate(
  keys: Keys,
  name: string,
  from: string,
  to: string,
  signs = false,
): Promise<string> {
  const made = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    notBefore: new Date(from),
    notAfter: new Date(to),
    signingAlgorithm: ALGORITHM,
    keys: { privateKey: await signingKey(keys), publicKey: await verifyingKey(keys) },
    extensions: [
      new x509.SubjectAlternativeNameExtension([{ type: "dns", value: name }]),
      ...(signs ? [new x509.BasicConstraintsExtension(true)] : []),
    ],
  });
  return made.toString("pem");
}

async function revocationList(keys: Keys, from: string, to: string): Promise<string> {
  const made = await x509.X509CrlGenerator.create({
    issuer: "CN=Clients",
    thisUpdate: new Date(from),
    nextUpdate: new Date(to),
    signingAlgorithm: ALGORITHM,
    signingKey: await signingKey(keys),
  });
  // OpenSSL's label of a list.
  return made.toString("pem").replace(/(BEGIN|END) CRL/g, "$1 X509 CRL");
}

const { subtle } = globalThis.crypto;
const signingKey = ({ privateKey }: Keys) =>
  subtle.importKey("pkcs8", der(privateKey, "pkcs8"), ALGORITHM, true, ["sign"]);
const verifyingKey = ({ publicKey }: Keys) =>
  subtle.importKey("spki", der(publicKey, "spki"), ALGORITHM, true, ["verify"]);

type KeyLike = ReturnType<typeof generateKeyPairSync>["privateKey"];

const der = (key: KeyLike, type: "pkcs8" | "spki"): Uint8Array<ArrayBuffer> =>
  new Uint8Array(key.export({ type: type as "pkcs8", format: "der" }));

const GONE =
  "The file does not exist, or the user that runs portico has no permission to read it or to enter a directory above it.";

/** Codes of the files that a config names: they come from `portico check`, from `serve` and from a reload. */
export const CHECK_ERRORS = {
  "files.unreadable": {
    means: `${GONE} A stack reports this code if a file that it deploys does not exist.`,
    example: checked("files.unreadable", ({ files }) => delete files[CERTIFICATE]),
  },
  "files.bad-key": {
    means:
      "The file is not a usable private key or other key: it is encrypted, damaged, or contains something else.",
    example: checked("files.bad-key", ({ files }) => (files[KEY] = { text: "no key\n", mode: 0o600 })),
  },
  "files.bad-certificate": {
    means: "The file contains no usable certificate, or contains a chain that clients would refuse.",
    example: checked(
      "files.bad-certificate",
      ({ files }) => (files[CERTIFICATE] = { text: "no certificate\n" }),
    ),
  },
  "files.bad-dhparam": {
    means: "The file contains no Diffie-Hellman parameters, or parameters that are too short to be safe.",
    example: checked("files.bad-dhparam", ({ files }) => (files[DHPARAM] = { text: "no parameters\n" }), {
      dhparam: DHPARAM,
    }),
  },
  "files.bad-ticket-secret": {
    means:
      "Portico cannot derive ticket keys from the content of the file. All proxies that share sessions need the same secret, so create it once and copy it.",
    example: checked(
      "files.bad-ticket-secret",
      ({ files }) => (files[TICKET_SECRET] = { text: "c2hvcnQ=\n", mode: 0o600 }),
      {},
      { ticketKeys: { file: TICKET_SECRET } },
    ),
  },
  "files.bad-address-list": {
    means:
      "The file of an access policy is not a list of addresses: it was cut off, or another page was downloaded in its place. A service that runs keeps the previous list. See [access.md](access.md).",
    example: checked(
      "files.bad-address-list",
      ({ files }) => (files[DENIED] = { text: "192.0.2.1\n<!doctype html>\n" }),
      {},
      { accessPolicies: { site: { denyFile: DENIED } } },
    ),
  },
  "files.bad-users": {
    means:
      "The file of a policy with Basic authentication is no list of users with hashes of their passwords. Messages never show a hash. A service that runs keeps the previous users. See [access.md](access.md).",
    example: checked(
      "files.bad-users",
      ({ files }) => (files[USERS] = { text: "alice:hunter2\n", mode: 0o600 }),
      {},
      { accessPolicies: { site: { basic: { usersFile: USERS } } } },
    ),
  },
  "files.bad-notification-secret": {
    means:
      "The file of a notification target contains no valid URL or no valid token. Messages never show the content of the file.",
    example: checked(
      "files.bad-notification-secret",
      ({ files }) => (files[NOTIFY_URL] = { text: "alerts.example.org/hook\n", mode: 0o600 }),
      {},
      { notifications: { targets: [{ type: "webhook", name: "office", urlFile: NOTIFY_URL }] } },
    ),
  },
  "files.bad-authority": {
    means:
      "The file of `clientCertificate` is no list of authorities: it was cut off, an intermediate certificate has no root, or a certificate in it may sign no other. A service that runs keeps the previous file. See [client-certificates.md](client-certificates.md).",
    example: asking("files.bad-authority", async ({ files, certify, revocations }) => {
      files[CLIENTS] = { text: await certify("files.example.org", "2025-01-01", "2099-01-01") };
      files[REVOKED] = { text: await revocations("2025-01-01", "2099-01-01") };
    }),
  },
  "files.bad-crl": {
    means:
      "The file of `clientCertificate` is no list of revoked certificates, or not of the authorities of `ca`, each of which needs one. A service that runs keeps the previous file. See [client-certificates.md](client-certificates.md).",
    example: asking("files.bad-crl", async ({ files, authority }) => {
      files[CLIENTS] = { text: await authority() };
      files[REVOKED] = { text: "no list\n" };
    }),
  },
  "files.crl-expired": {
    means:
      "After its end, a list of revoked certificates says nothing about certificates that were revoked since, so no client of the authority comes in. A reload refuses the list, and the proxy keeps the previous one. A service that starts serves, and refuses the clients. See [client-certificates.md](client-certificates.md).",
    example: asking("files.crl-expired", async ({ files, authority, revocations }) => {
      files[CLIENTS] = { text: await authority() };
      files[REVOKED] = { text: await revocations("2025-01-01", "2025-04-01") };
    }),
  },
  "files.key-mismatch": {
    means:
      "The private key does not belong to the certificate, most often because only one of the two was renewed.",
    example: checked("files.key-mismatch", ({ files }) => {
      const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
      files[KEY] = { text: privateKey.export({ type: "pkcs8", format: "pem" }).toString(), mode: 0o600 };
    }),
  },
  "files.certificate-expired": {
    means:
      "Clients refuse the certificate. A reload refuses it too, and the proxy keeps the previous certificate. A service that starts serves with the certificate, and logs a warning.",
    example: checked("files.certificate-expired", async ({ files, certify }) => {
      files[CERTIFICATE] = { text: await certify("files.example.org", "2025-01-01", "2025-04-01") };
    }),
  },
  "files.certificate-not-yet-valid": {
    means:
      "Clients refuse the certificate until it is valid. Either the certificate is for a later time, or the host's clock is wrong.",
    example: checked("files.certificate-not-yet-valid", async ({ files, certify }) => {
      files[CERTIFICATE] = { text: await certify("files.example.org", "2098-01-01", "2099-01-01") };
    }),
  },
  "files.name-not-covered": {
    means:
      "Clients that use the name get a certificate for another name, and refuse it. This is a warning: the proxy serves.",
    example: checked("files.name-not-covered", async ({ files, certify }) => {
      files[CERTIFICATE] = { text: await certify("www.example.org", "2020-01-01", "2099-01-01") };
    }),
  },
  "files.certificate-not-chosen": {
    means:
      "A listener has several certificates, but clients never get this certificate for the names in the message: an earlier certificate has the same names, or this certificate contains no DNS name, and clients can ask only for DNS names. This is a warning: the proxy serves.",
    example: checked("files.certificate-not-chosen", () => undefined, {
      certificates: [{ certificate: CERTIFICATE, key: KEY }],
    }),
  },
  "files.key-exposed": {
    means:
      "Users other than the owner can read or replace a file with a private key or another secret. The group may read the file if the proxy itself reads it as a member of this group. This is a warning: the proxy serves.",
    example: checked("files.key-exposed", ({ files }) => {
      files[KEY] = { ...(files[KEY] as { text: string }), mode: 0o644 };
    }),
  },
  "files.bad-directory": {
    means:
      "A directory of a route does not exist, is not a directory, or is not readable for the user that runs portico; or the directory for the service's credentials is not safe.",
    example: checked("files.bad-directory", ({ files }) => (files[MEDIA] = { text: "" })),
  },
  "files.log-not-writable": {
    means:
      "The proxy cannot open a log file. A service that starts serves without the log, and reports a warning.",
    example: checked("files.log-not-writable", ({ files }) => (files[LOG] = "directory")),
  },
  "tls.unverified-upstream": {
    means:
      "The proxy does not verify the certificate of the upstream: an attacker between the two can take the place of the upstream. This is a warning: the proxy serves.",
    example: checked(
      "tls.unverified-upstream",
      () => undefined,
      {},
      { upstreams: [{ name: "app", url: "https://app.internal:8443", tls: { verify: false } }] },
    ),
  },
  "tls.bad-policy": {
    means:
      "OpenSSL on this host does not know a cipher or curve of the policy, or no client could complete a handshake with this policy and the key of the certificate.",
    example: checked("tls.bad-policy", () => undefined, {
      policy: {
        minVersion: "TLSv1.2",
        maxVersion: "TLSv1.3",
        ciphers: "ECDHE+AESGCM",
        curves: ["curve25519"],
      },
    }),
  },
} satisfies Record<string, ErrorEntry>;
