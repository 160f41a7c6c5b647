import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  webcrypto,
} from "node:crypto";
import { isIP } from "node:net";
import "../../build/reflectMetadata.js";
import * as x509 from "@peculiar/x509";

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
  const { privateKey } =
    type === "rsa"
      ? generateKeyPairSync("rsa", { modulusLength: bits })
      : generateKeyPairSync("ec", { namedCurve: "P-256" });
  const signer = issuer === undefined ? privateKey : createPrivateKey(issuer.key);
  const certificate = await x509.X509CertificateGenerator.create(
    {
      serialNumber: randomBytes(8).toString("hex"),
      subject: `CN=${name}`,
      issuer: `CN=${issuer?.name ?? name}`,
      notBefore: new Date(Date.now() + from * DAY_MS),
      notAfter: new Date(Date.now() + to * DAY_MS),
      signingAlgorithm: algorithmOf(signer),
      publicKey: (await pair(privateKey)).publicKey,
      signingKey: (await pair(signer)).privateKey,
      extensions: names.length === 0 ? [] : [alternativeNames(names)],
    },
    webcrypto,
  );
  const key = privateKey.export({ type: "pkcs8", format: "pem" }) as string;
  return { key, cert: `${certificate.toString("pem")}\n`, name };
}

function alternativeNames(names: readonly string[]): x509.SubjectAlternativeNameExtension {
  const entries = names.map((value) => ({
    type: isIP(value) === 0 ? ("dns" as const) : ("ip" as const),
    value,
  }));
  return new x509.SubjectAlternativeNameExtension(entries);
}

const DAY_MS = 86_400_000;

function algorithmOf(key: KeyObject) {
  return key.asymmetricKeyType === "rsa"
    ? { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" }
    : { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
}

async function pair(key: KeyObject): Promise<webcrypto.CryptoKeyPair> {
  const algorithm = algorithmOf(key);
  const pkcs8 = key.export({ type: "pkcs8", format: "der" });
  const spki = createPublicKey(key).export({ type: "spki", format: "der" });
  return {
    privateKey: await webcrypto.subtle.importKey("pkcs8", pkcs8, algorithm, true, ["sign"]),
    publicKey: await webcrypto.subtle.importKey("spki", spki, algorithm, true, ["verify"]),
  };
}
