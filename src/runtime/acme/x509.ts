import { DAY_MS } from "../../model/text/duration.js";
import {
  createHash,
  createPublicKey,
  generateKeyPair,
  type KeyObject,
  randomBytes,
  sign,
  type X509Certificate,
} from "node:crypto";
import { isIP } from "node:net";
import { promisify } from "node:util";
import { ipv4Bits, ipv6Groups } from "../../model/net/address.js";
import * as der from "../tls/der.js";
import type { KeyPair, KeyType } from "./acmeHost.js";

/**
 * Keys, requests and the two kinds of certificates that we sign ourselves. These are three fixed shapes of DER; a
 * library for all of X.509 would be 19 packages and more than half as large as everything else in the one file.
 */

/** Contents of object identifiers. */
const OID = {
  ecdsaWithSha256: "2a8648ce3d040302",
  sha256WithRsa: "2a864886f70d01010b",
  commonName: "550403",
  subjectAltName: "551d11",
  basicConstraints: "551d13",
  authorityKeyIdentifier: "551d23",
  extendedKeyUsage: "551d25",
  serverAuth: "2b06010505070301",
  /** RFC 8737, 6.1. */
  acmeIdentifier: "2b0601050507011f",
  extensionRequest: "2a864886f70d01090e",
};

/** A new private key. RSA takes up to seconds, on another thread. */
export async function newKey(type: KeyType): Promise<KeyObject> {
  const { privateKey } =
    type === "ecdsa-p256"
      ? await promisify(generateKeyPair)("ec", { namedCurve: "P-256" })
      : await promisify(generateKeyPair)("rsa", { modulusLength: Number(type.slice("rsa-".length)) });
  return privateKey;
}

export const keyPem = (key: KeyObject): string => key.export({ type: "pkcs8", format: "pem" }) as string;

/** A request in DER (RFC 2986); its names are alternative names only. */
export async function certificateRequest(names: readonly string[], key: KeyObject): Promise<Buffer> {
  const wanted = der.sequence(subjectAltName(names));
  const attribute = der.sequence(der.oid(OID.extensionRequest), der.set(wanted));
  const version = der.integer(Buffer.from([0]));
  return signed(der.sequence(version, der.sequence(), spki(key), der.explicit(0, attribute)), key);
}

/** A self-signed certificate for names without one: clients do not trust it, but listeners can start. */
export async function temporaryCertificate(names: readonly string[], keyType: KeyType): Promise<KeyPair> {
  const purpose = extension(OID.extendedKeyUsage, der.sequence(der.oid(OID.serverAuth)));
  return selfSigned(await newKey(keyType), names, [purpose]);
}

/** The certificate that an authority expects with `acme-tls/1` (RFC 8737, 3; for an address RFC 8738, 6). */
export async function tlsAlpnCertificate(name: string, keyAuthorization: string): Promise<KeyPair> {
  const digest = createHash("sha256").update(keyAuthorization).digest();
  const proof = extension(OID.acmeIdentifier, der.octets(digest), true);
  return selfSigned(await newKey("ecdsa-p256"), [name], [proof]);
}

/**
 * The identifier of a certificate by RFC 9773, 4.1: the key identifier of its issuer and its serial number; undefined
 * if the certificate lacks them, or differs from RFC 5280.
 */
export function renewalId(certificate: X509Certificate): string | undefined {
  try {
    const [, serial] = tbsValues(certificate);
    const issuer = extensionOf(certificate, OID.authorityKeyIdentifier);
    const keyIdentifier =
      issuer && der.values(der.values(issuer)[0]!.content).find(({ tag }) => tag === 0x80);
    if (keyIdentifier === undefined) return undefined;
    return `${keyIdentifier.content.toString("base64url")}.${serial!.content.toString("base64url")}`;
  } catch {
    return undefined;
  }
}

/** The values of a certificate: version, serial number and so on. Version 1 has none; no authority issues it. */
const tbsValues = (certificate: X509Certificate): der.DerValue[] => {
  const [whole] = der.values(certificate.raw);
  return der.values(der.values(whole!.content)[0]!.content);
};

/** The identifier of each extension, whether the extension is critical (if that is said), and its value. */
function extensionsOf(certificate: X509Certificate): der.DerValue[][] {
  const list = tbsValues(certificate).find(({ tag }) => tag === 0xa3);
  const all = list === undefined ? [] : der.values(der.values(list.content)[0]!.content);
  return all.map(({ content }) => der.values(content));
}

function extensionOf(certificate: X509Certificate, oid: string): Buffer | undefined {
  const found = extensionsOf(certificate).find(([id]) => id!.content.toString("hex") === oid);
  return found?.at(-1)?.content;
}

/** Whether a server may use a certificate: without the extension for every purpose (RFC 5280, 4.2.1.12). */
export function extendedKeyUsageAllowsServers({ keyUsage }: X509Certificate): boolean {
  // Node's `keyUsage` is the extended one.
  return keyUsage === undefined || keyUsage.some((purpose) => SERVERS.has(purpose));
}

/** `serverAuth` and `anyExtendedKeyUsage`. */
const SERVERS: ReadonlySet<string> = new Set(["1.3.6.1.5.5.7.3.1", "2.5.29.37.0"]);

/** The identifier of a critical extension that clients do not know: they refuse the certificate (RFC 5280, 4.2). */
export function unknownCriticalExtension(certificate: X509Certificate): string | undefined {
  try {
    const critical = extensionsOf(certificate).filter(
      (parts) => parts.length > 2 && parts[1]!.content[0] !== 0,
    );
    return critical.map(([id]) => dotted(id!.content)).find((id) => !KNOWN.has(id));
  } catch {
    return "that cannot be read";
  }
}

/** Extensions of RFC 5280, 4.2.1. */
const KNOWN: ReadonlySet<string> = new Set(
  [15, 17, 18, 19, 30, 31, 32, 33, 35, 36, 37, 54].map((last) => `2.5.29.${last}`),
);

/** An object identifier as people write it (X.690, 8.19). */
function dotted(content: Buffer): string {
  const arcs = [0];
  for (const byte of content) {
    arcs.push(arcs.pop()! * 128 + (byte & 0x7f));
    if (byte < 0x80) arcs.push(0);
  }
  const [first, ...others] = arcs.slice(0, -1) as [number, ...number[]];
  const top = Math.min(2, Math.floor(first / 40));
  return [top, first - top * 40, ...others].join(".");
}

const SELF_SIGNED_DAYS = 365;

/** @param more extensions besides the names */
async function selfSigned(key: KeyObject, names: readonly string[], more: Buffer[]): Promise<KeyPair> {
  const subject = der.sequence(
    der.set(der.sequence(der.oid(OID.commonName), der.utf8("temporary certificate of portico"))),
  );
  const now = Date.now();
  // A client's clock may be behind.
  const validity = [now - DAY_MS, now + SELF_SIGNED_DAYS * DAY_MS].map((at) => der.time(new Date(at)));
  // The certificate has no key usage: with a key usage that does not include signing certificates, OpenSSL would not
  // accept it as its own issuer.
  const extensions = [subjectAltName(names), extension(OID.basicConstraints, der.sequence(), true), ...more];
  const tbs = der.sequence(
    der.explicit(0, der.integer(Buffer.from([2]))),
    der.integer(randomBytes(16)),
    signatureAlgorithm(key),
    subject,
    der.sequence(...validity),
    subject,
    spki(key),
    der.explicit(3, der.sequence(...extensions)),
  );
  return { key: keyPem(key), cert: pem("CERTIFICATE", await signed(tbs, key)) };
}

async function signed(content: Buffer, key: KeyObject): Promise<Buffer> {
  const signature = await new Promise<Buffer>((resolve, reject) =>
    sign("sha256", content, key, (error, made) => (error === null ? resolve(made) : reject(error))),
  );
  return der.sequence(content, signatureAlgorithm(key), der.bits(signature));
}

const signatureAlgorithm = (key: KeyObject): Buffer =>
  key.asymmetricKeyType === "rsa"
    ? der.sequence(der.oid(OID.sha256WithRsa), der.nil())
    : der.sequence(der.oid(OID.ecdsaWithSha256));

const spki = (key: KeyObject): Buffer => createPublicKey(key).export({ type: "spki", format: "der" });

function extension(oid: string, value: Buffer, critical = false): Buffer {
  const flag = critical ? [der.yes()] : [];
  return der.sequence(der.oid(oid), ...flag, der.octets(value));
}

/** RFC 5280, 4.2.1.6: `dNSName` or `iPAddress`. */
function subjectAltName(names: readonly string[]): Buffer {
  const general = names.map((name) =>
    isIP(name) === 0 ? der.implicit(2, Buffer.from(name, "latin1")) : der.implicit(7, addressBytes(name)),
  );
  return extension(OID.subjectAltName, der.sequence(...general));
}

/** Four bytes, or sixteen. */
export function addressBytes(address: string): Buffer {
  const bytes = Buffer.alloc(isIP(address) === 4 ? 4 : 16);
  const bits = ipv4Bits(address);
  if (bits !== undefined) bytes.writeUInt32BE(bits);
  else ipv6Groups(address)!.forEach((group, i) => bytes.writeUInt16BE(group, 2 * i));
  return bytes;
}

function pem(label: string, content: Buffer): string {
  const lines = content.toString("base64").match(/.{1,64}/g)!;
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}
