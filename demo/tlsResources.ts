import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  webcrypto,
} from "node:crypto";
import "../build/reflectMetadata.js";
import * as x509 from "@peculiar/x509";

/** Arguments of a resource as they stand in the synthesized JSON. */
export type Arguments = Readonly<Record<string, unknown>>;
/** Attributes that other resources may refer to. */
export type Attributes = Readonly<Record<string, string>>;

/** What `tls_private_key` would create. */
export function privateKey(args: Arguments): Attributes {
  const key = generateKey(args);
  return {
    private_key_pem: pem(key, key.asymmetricKeyType === "rsa" ? "pkcs1" : "sec1"),
    private_key_pem_pkcs8: pem(key, "pkcs8"),
    public_key_pem: createPublicKey(key).export({ type: "spki", format: "pem" }) as string,
  };
}

/** What `tls_self_signed_cert` would create; `private_key_pem` must be resolved already. */
export async function selfSignedCertificate(args: Arguments): Promise<Attributes> {
  const key = createPrivateKey(String(args["private_key_pem"]));
  const algorithm = signingAlgorithm(key);
  const notBefore = new Date();
  const hours = Number(args["validity_period_hours"]);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned(
    {
      serialNumber: randomBytes(16).toString("hex"),
      name: subjectName(args["subject"]),
      notBefore,
      notAfter: new Date(notBefore.getTime() + hours * 3_600_000),
      signingAlgorithm: algorithm,
      keys: await cryptoKeys(key, algorithm),
      extensions: extensions(args),
    },
    webcrypto,
  );
  return { cert_pem: `${certificate.toString("pem")}\n` };
}

function generateKey(args: Arguments): KeyObject {
  const algorithm = String(args["algorithm"]);
  if (algorithm === "RSA") {
    return generateKeyPairSync("rsa", { modulusLength: Number(args["rsa_bits"] ?? 2048) }).privateKey;
  }
  if (algorithm === "ECDSA") {
    const curve = CURVES[String(args["ecdsa_curve"] ?? "P224")];
    if (curve !== undefined) return generateKeyPairSync("ec", { namedCurve: curve }).privateKey;
  }
  throw new Error(
    `a key of algorithm ${algorithm} ${String(args["ecdsa_curve"] ?? "")} cannot be created here`,
  );
}

const CURVES: Readonly<Record<string, string>> = { P256: "P-256", P384: "P-384", P521: "P-521" };

function pem(key: KeyObject, type: "pkcs1" | "sec1" | "pkcs8"): string {
  return key.export({ type, format: "pem" }) as string;
}

type SigningAlgorithm = webcrypto.RsaHashedImportParams & webcrypto.EcdsaParams & { namedCurve?: string };

function signingAlgorithm(key: KeyObject): SigningAlgorithm {
  if (key.asymmetricKeyType === "rsa") return { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };
  const { crv } = key.export({ format: "jwk" });
  return {
    name: "ECDSA",
    namedCurve: crv,
    hash: crv === "P-521" ? "SHA-512" : crv === "P-384" ? "SHA-384" : "SHA-256",
  };
}

async function cryptoKeys(key: KeyObject, algorithm: SigningAlgorithm): Promise<webcrypto.CryptoKeyPair> {
  const { subtle } = webcrypto;
  const spki = createPublicKey(key).export({ type: "spki", format: "der" });
  const pkcs8 = key.export({ type: "pkcs8", format: "der" });
  return {
    publicKey: await subtle.importKey("spki", spki, algorithm, true, ["verify"]),
    privateKey: await subtle.importKey("pkcs8", pkcs8, algorithm, true, ["sign"]),
  };
}

function extensions(args: Arguments): x509.Extension[] {
  const uses = strings(args["allowed_uses"]);
  const usages = uses.reduce((flags, use) => flags | (KEY_USAGES[use] ?? 0), 0);
  const extended = uses.flatMap((use) => EXTENDED_USAGES[use] ?? []);
  const names: x509.JsonGeneralNames = [
    ...strings(args["dns_names"]).map((value) => ({ type: "dns" as const, value })),
    ...strings(args["ip_addresses"]).map((value) => ({ type: "ip" as const, value })),
    ...strings(args["uris"]).map((value) => ({ type: "url" as const, value })),
  ];
  return [
    new x509.BasicConstraintsExtension(args["is_ca_certificate"] === true, undefined, true),
    ...(usages === 0 ? [] : [new x509.KeyUsagesExtension(usages, true)]),
    ...(extended.length === 0 ? [] : [new x509.ExtendedKeyUsageExtension(extended)]),
    ...(names.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(names)]),
  ];
}

const { KeyUsageFlags, ExtendedKeyUsage } = x509;

const KEY_USAGES: Readonly<Record<string, number>> = {
  digital_signature: KeyUsageFlags.digitalSignature,
  content_commitment: KeyUsageFlags.nonRepudiation,
  key_encipherment: KeyUsageFlags.keyEncipherment,
  data_encipherment: KeyUsageFlags.dataEncipherment,
  key_agreement: KeyUsageFlags.keyAgreement,
  cert_signing: KeyUsageFlags.keyCertSign,
  crl_signing: KeyUsageFlags.cRLSign,
};

const EXTENDED_USAGES: Readonly<Record<string, string>> = {
  server_auth: ExtendedKeyUsage.serverAuth,
  client_auth: ExtendedKeyUsage.clientAuth,
};

/** The `subject` block: one object, or a list of one. */
function subjectName(subject: unknown): x509.JsonName {
  const block = (Array.isArray(subject) ? subject[0] : subject) as Arguments | undefined;
  return Object.entries(SUBJECT_FIELDS).flatMap(([argument, short]) => {
    const value = block?.[argument];
    return typeof value === "string" && value !== "" ? [{ [short]: [value] }] : [];
  });
}

const SUBJECT_FIELDS = {
  country: "C",
  province: "ST",
  locality: "L",
  organization: "O",
  organizational_unit: "OU",
  common_name: "CN",
};

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}
