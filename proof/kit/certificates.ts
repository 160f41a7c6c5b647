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
import * as der from "../../src/runtime/acme/der.js";
import { addressBytes } from "../../src/runtime/acme/x509.js";
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
  /** Days from now. */
  readonly from?: number;
  readonly to?: number;
  /** Who signs; by default the certificate itself. */
  readonly issuer?: Issued;
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
  } = options;
  const key =
    type === "rsa" ? await rsaKey(bits) : generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
  const signer = issuer === undefined ? key : createPrivateKey(issuer.key);
  const algorithm = SIGNATURES[signer.asymmetricKeyType as "rsa" | "ec"];
  const at = (days: number): Buffer => der.time(new Date(Date.now() + days * DAY_MS));
  const tbs = der.sequence(
    der.explicit(0, der.integer(Buffer.from([2]))),
    der.integer(randomBytes(8)),
    algorithm,
    commonName(issuer?.name ?? name),
    der.sequence(at(from), at(to)),
    commonName(name),
    createPublicKey(key).export({ type: "spki", format: "der" }),
    ...(names.length === 0 ? [] : [der.explicit(3, der.sequence(alternativeNames(names)))]),
  );
  const signed = der.sequence(tbs, algorithm, der.bits(sign("sha256", tbs, signer)));
  const lines = signed.toString("base64").match(/.{1,64}/g)!;
  const cert = `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
  return { key: key.export({ type: "pkcs8", format: "pem" }) as string, cert, name };
}

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

const commonName = (name: string): Buffer =>
  der.sequence(der.set(der.sequence(der.oid("550403"), der.utf8(name))));

function alternativeNames(names: readonly string[]): Buffer {
  const general = names.map((name) =>
    isIP(name) === 0 ? der.implicit(2, Buffer.from(name, "latin1")) : der.implicit(7, addressBytes(name)),
  );
  return der.sequence(der.oid("551d11"), der.octets(der.sequence(...general)));
}

const DAY_MS = 86_400_000;
