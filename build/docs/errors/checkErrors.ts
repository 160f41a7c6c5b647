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
const LOG = "/var/log/portico/access.log";
const MEDIA = "/srv/files/media";

/** A config whose files are all there. */
const config = (tls: object, more: object) => ({
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
      routes: [{ name: "media", path: "/media", action: { type: "staticFiles", directory: MEDIA } }],
    },
  ],
});

interface Site {
  readonly files: Files;
  /** A certificate for the key with another name or other dates. */
  certify(name: string, from: string, to: string): Promise<string>;
}

/** The problem that a check finds on a host that is correct except for one change. */
function checked(
  code: string,
  change: (site: Site) => unknown,
  tls: object = {},
  more: object = {},
): ErrorEntry["example"] {
  return async () => {
    const root = mkdtempSync(path.join(tmpdir(), "portico-docs-"));
    try {
      const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
      const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
      const certify = (name: string, from: string, to: string) =>
        certificate({ privateKey, publicKey }, name, from, to);
      const valid = await certify("files.example.org", "2020-01-01", "2099-01-01");
      const files: Files = {
        [CERTIFICATE]: { text: valid },
        [KEY]: { text: pem, mode: 0o600 },
        "/var/log/portico": "directory",
        [MEDIA]: "directory",
      };
      await change({ files, certify });
      writeBelow(root, files);
      const file = path.join(root, "portico.json");
      writeFileSync(file, JSON.stringify(config(tls, more)));
      const loaded = await loadConfig({ file, root });
      const found = (loaded.ok ? loaded.value.warnings : loaded.problems).find((p) => p.code === code);
      if (found === undefined) throw new Error(`the example of ${code} has no such problem`);
      return elsewhere(found, root);
    } finally {
      rmSync(root, { recursive: true });
    }
  };
}

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
    .replace(/and it is [^"]+Z/, "and it is 2026-01-05T08:00:00.000Z");
  return JSON.parse(text) as Problem;
}

async function certificate(
  keys: { readonly privateKey: KeyLike; readonly publicKey: KeyLike },
  name: string,
  from: string,
  to: string,
): Promise<string> {
  const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const { subtle } = globalThis.crypto;
  const made = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    notBefore: new Date(from),
    notAfter: new Date(to),
    signingAlgorithm: algorithm,
    keys: {
      privateKey: await subtle.importKey("pkcs8", der(keys.privateKey, "pkcs8"), algorithm, true, ["sign"]),
      publicKey: await subtle.importKey("spki", der(keys.publicKey, "spki"), algorithm, true, ["verify"]),
    },
    extensions: [new x509.SubjectAlternativeNameExtension([{ type: "dns", value: name }])],
  });
  return made.toString("pem");
}

type KeyLike = ReturnType<typeof generateKeyPairSync>["privateKey"];

const der = (key: KeyLike, type: "pkcs8" | "spki"): Uint8Array<ArrayBuffer> =>
  new Uint8Array(key.export({ type: type as "pkcs8", format: "der" }));

const GONE =
  "The file is not there, or the user that runs portico may not read it or go into a directory above it.";

/** Codes of the files that a config names: they come from `portico check`, from `serve` and from a reload. */
export const CHECK_ERRORS = {
  "files.unreadable": {
    means: `${GONE} A stack answers with the code if a file that it deploys is not there.`,
    example: checked("files.unreadable", ({ files }) => delete files[CERTIFICATE]),
  },
  "files.bad-key": {
    means: "The file is not a usable private key: it is encrypted, damaged or something else.",
    example: checked("files.bad-key", ({ files }) => (files[KEY] = { text: "no key\n", mode: 0o600 })),
  },
  "files.bad-certificate": {
    means: "The file is not a certificate, or a chain that clients would refuse.",
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
      "The file is not a secret that ticket keys can be derived from. All who share sessions need the same one, so it is made once and copied.",
    example: checked(
      "files.bad-ticket-secret",
      ({ files }) => (files[TICKET_SECRET] = { text: "c2hvcnQ=\n", mode: 0o600 }),
      {},
      { ticketKeys: { file: TICKET_SECRET } },
    ),
  },
  "files.bad-notification-secret": {
    means:
      "The file of a notification target holds no URL, or no token, where one is needed. What it holds is in no message.",
    example: checked(
      "files.bad-notification-secret",
      ({ files }) => (files[NOTIFY_URL] = { text: "alerts.example.org/hook\n", mode: 0o600 }),
      {},
      { notifications: { targets: [{ type: "webhook", name: "office", urlFile: NOTIFY_URL }] } },
    ),
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
      "Clients refuse the certificate. A reload refuses it too, and the proxy keeps what it has; a service that starts serves anyway, and logs a warning.",
    example: checked("files.certificate-expired", async ({ files, certify }) => {
      files[CERTIFICATE] = { text: await certify("files.example.org", "2025-01-01", "2025-04-01") };
    }),
  },
  "files.certificate-not-yet-valid": {
    means:
      "Clients refuse the certificate until it is valid. Either it is meant for later, or the host's clock is wrong.",
    example: checked("files.certificate-not-yet-valid", async ({ files, certify }) => {
      files[CERTIFICATE] = { text: await certify("files.example.org", "2098-01-01", "2099-01-01") };
    }),
  },
  "files.name-not-covered": {
    means:
      "Clients that use the name get a certificate for another name, and refuse it. A warning: the proxy serves.",
    example: checked("files.name-not-covered", async ({ files, certify }) => {
      files[CERTIFICATE] = { text: await certify("www.example.org", "2020-01-01", "2099-01-01") };
    }),
  },
  "files.certificate-not-chosen": {
    means:
      "A listener has several certificates, and clients never get this one for the names in the message: an earlier one has these names too, or it has no DNS name, and clients can only ask for DNS names. A warning: the proxy serves.",
    example: checked("files.certificate-not-chosen", () => undefined, {
      certificates: [{ certificate: CERTIFICATE, key: KEY }],
    }),
  },
  "files.key-exposed": {
    means:
      "Users other than the owner can read a private key or the secret of ticket keys, or replace it. The group may read it where the proxy itself does so by its group. A warning: the proxy serves.",
    example: checked("files.key-exposed", ({ files }) => {
      files[KEY] = { ...(files[KEY] as { text: string }), mode: 0o644 };
    }),
  },
  "files.bad-directory": {
    means:
      "A directory that files are served from does not exist, is not a directory, or cannot be read by the user that runs portico.",
    example: checked("files.bad-directory", ({ files }) => (files[MEDIA] = { text: "" })),
  },
  "files.log-not-writable": {
    means: "A log file cannot be opened. A service that starts serves without it, and logs a warning.",
    example: checked("files.log-not-writable", ({ files }) => (files[LOG] = "directory")),
  },
  "tls.unverified-upstream": {
    means:
      "Requests go over TLS to an upstream that does not have to prove who it is: anybody between it and the proxy can take its place. A warning: the proxy serves.",
    example: checked(
      "tls.unverified-upstream",
      () => undefined,
      {},
      { upstreams: [{ name: "app", url: "https://app.internal:8443", tls: { verify: false } }] },
    ),
  },
  "tls.bad-policy": {
    means:
      "OpenSSL on this host does not know a cipher or curve of the policy, or no client could complete a handshake with it.",
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
