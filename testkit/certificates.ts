import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
} from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { isIP } from "node:net";
import * as der from "../src/runtime/tls/der.js";
import { addressBytes } from "../src/runtime/acme/x509.js";
import { sharedFile } from "./sharedFile.js";

/*
 * Written by hand: a library for all of X.509 is two hundred modules, which take longer to load than all else that most
 * of these tests do.
 */

export interface Issued {
  readonly key: string;
  readonly cert: string;
  readonly name: string;
}

export interface CertificateOptions {
  readonly name?: string;
  /** Subject alternative names: host names, also with `*`, and addresses. */
  readonly names?: readonly string[];
  readonly type?: "rsa" | "ec";
  readonly bits?: number;
  /** A key that is there already, as PEM. */
  readonly key?: string;
  /** Days from now. */
  readonly from?: number;
  readonly to?: number;
  /** Who signs; by default the certificate itself. */
  readonly issuer?: Issued;
  /** Whether it may sign others. */
  readonly ca?: boolean;
  readonly serial?: Buffer;
  /** More of them. */
  readonly extensions?: readonly Buffer[];
}

/** A certificate with a new key, as PEM. */
export async function issue(options: CertificateOptions = {}): Promise<Issued> {
  const {
    names = [],
    name = names[0] ?? "localhost",
    type = "rsa",
    bits = 2048,
    from = -1,
    to = 30,
    issuer,
    ca = false,
  } = options;
  const key = options.key === undefined ? await newKey(type, bits) : createPrivateKey(options.key);
  const signer = issuer === undefined ? key : createPrivateKey(issuer.key);
  const at = (days: number): Date => new Date(Date.now() + days * DAY_MS);
  const cert = signed({
    subject: [["CN", name]],
    issuer: [["CN", issuer?.name ?? name]],
    from: at(from),
    to: at(to),
    publicKey: createPublicKey(key).export({ type: "spki", format: "der" }),
    signer,
    serial: options.serial,
    extensions: [
      ...(names.length === 0 ? [] : [alternativeNames(names)]),
      ...(ca ? [MAY_SIGN] : []),
      ...(options.extensions ?? []),
    ],
  });
  return { key: key.export({ type: "pkcs8", format: "pem" }) as string, cert, name };
}

const newKey = async (type: "rsa" | "ec", bits: number): Promise<KeyObject> =>
  type === "rsa" ? rsaKey(bits) : generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;

let rsaKeys = 0;

/** RSA keys take long to find: all suites have the same ones, each of them one after the other. */
async function rsaKey(modulusLength: number): Promise<KeyObject> {
  const pem = await sharedFile(`rsa-${modulusLength}-${++rsaKeys}.pem`, (file) => {
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength });
    writeFileSync(file, privateKey.export({ type: "pkcs8", format: "pem" }), { mode: 0o600 });
  });
  return createPrivateKey(readFileSync(pem));
}

/** RFC 3279, 2.2.1, and RFC 5758, 3.2: both with SHA-256. */
const SIGNATURES = {
  rsa: der.sequence(der.oid("2a864886f70d01010b"), der.nil()),
  ec: der.sequence(der.oid("2a8648ce3d040302")),
};

type DistinguishedName = readonly (readonly ["CN" | "O" | "OU", string])[];

export interface SignedParts {
  readonly subject: DistinguishedName;
  readonly issuer: DistinguishedName;
  readonly from: Date;
  readonly to: Date;
  /** Its SubjectPublicKeyInfo. */
  readonly publicKey: Buffer;
  readonly signer: KeyObject;
  readonly serial?: Buffer;
  readonly extensions?: readonly Buffer[];
}

export interface RevocationOptions {
  /** Serial numbers of revoked certificates. */
  readonly revoked?: readonly Buffer[];
  /** Days from now. */
  readonly from?: number;
  readonly to?: number;
  /** Its extensions. */
  readonly extensions?: readonly Buffer[];
}

/** A list of revoked certificates (RFC 5280, 5), as PEM. */
export function revocationList(issuer: Issued, options: RevocationOptions = {}): string {
  const { revoked = [], from = -1, to = 30, extensions = [] } = options;
  const signer = createPrivateKey(issuer.key);
  const algorithm = SIGNATURES[signer.asymmetricKeyType as "rsa" | "ec"];
  const at = (days: number): Buffer => der.time(new Date(Date.now() + days * DAY_MS));
  const tbs = der.sequence(
    der.integer(Buffer.from([1])),
    algorithm,
    distinguishedName([["CN", issuer.name]]),
    at(from),
    at(to),
    ...(revoked.length === 0
      ? []
      : [der.sequence(...revoked.map((serial) => der.sequence(der.integer(serial), at(from))))]),
    ...(extensions.length === 0 ? [] : [der.explicit(0, der.sequence(...extensions))]),
  );
  return pem("X509 CRL", der.sequence(tbs, algorithm, der.bits(sign("sha256", tbs, signer))));
}

function pem(kind: string, bytes: Buffer): string {
  const lines = bytes.toString("base64").match(/.{1,64}/g)!;
  return `-----BEGIN ${kind}-----\n${lines.join("\n")}\n-----END ${kind}-----\n`;
}

/** A certificate as PEM, of any parts. */
export function signed({ signer, serial = randomBytes(8), extensions = [], ...parts }: SignedParts): string {
  const algorithm = SIGNATURES[signer.asymmetricKeyType as "rsa" | "ec"];
  const tbs = der.sequence(
    der.explicit(0, der.integer(Buffer.from([2]))),
    der.integer(serial),
    algorithm,
    distinguishedName(parts.issuer),
    der.sequence(der.time(parts.from), der.time(parts.to)),
    distinguishedName(parts.subject),
    parts.publicKey,
    ...(extensions.length === 0 ? [] : [der.explicit(3, der.sequence(...extensions))]),
  );
  return pem("CERTIFICATE", der.sequence(tbs, algorithm, der.bits(sign("sha256", tbs, signer))));
}

const ATTRIBUTES = { CN: "550403", O: "55040a", OU: "55040b" };

const distinguishedName = (name: DistinguishedName): Buffer =>
  der.sequence(
    ...name.map(([attribute, value]) =>
      der.set(der.sequence(der.oid(ATTRIBUTES[attribute]), der.utf8(value))),
    ),
  );

export function alternativeNames(names: readonly string[]): Buffer {
  const general = names.map((name) =>
    isIP(name) === 0 ? der.implicit(2, Buffer.from(name, "latin1")) : der.implicit(7, addressBytes(name)),
  );
  return der.sequence(der.oid("551d11"), der.octets(der.sequence(...general)));
}

/** RFC 5280, 4.2.1.9. */
const MAY_SIGN = der.sequence(der.oid("551d13"), der.octets(der.sequence(Buffer.from([0x01, 0x01, 0xff]))));

/** RFC 5280, 4.2.1.12: for clients only. */
export const CLIENTS_ONLY = der.sequence(
  der.oid("551d25"),
  der.octets(der.sequence(der.oid("2b06010505070302"))),
);

/** RFC 6962, 3.1: no certificate, although it looks like one. */
export const POISON = der.sequence(der.oid("2b06010401d679020403"), der.yes(), der.octets(der.nil()));

/** RFC 5280, 4.2.1.1. */
export const authorityKeyIdentifier = (hex: string): Buffer =>
  der.sequence(der.oid("551d23"), der.octets(der.sequence(der.implicit(0, Buffer.from(hex, "hex")))));

const DAY_MS = 86_400_000;
