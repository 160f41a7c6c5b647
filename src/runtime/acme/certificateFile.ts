import { createPrivateKey, type KeyObject, type X509Certificate } from "node:crypto";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { coversName } from "../../model/net/certificateName.js";
import type { KeyPair, OrderedCertificate } from "./acmeHost.js";
import { certificatesOf } from "../load/certificateExpiry.js";
import type { CertificateContents } from "../tls/tlsContents.js";
import { namesIn, readState, writeState } from "./stateFiles.js";

/** A certificate as it is kept: key and chain in one file, so that there is never one without the other. */
export interface StoredCertificate extends KeyPair {
  readonly leaf: X509Certificate;
  readonly privateKey: KeyObject;
}

/** A certificate as listeners use it, under the id of the wanted one. */
export const contentsOf = (
  { id, names }: OrderedCertificate,
  { key, cert }: KeyPair,
  source: "acme" | "temporary" = "acme",
): CertificateContents => ({ id, source, names, key, cert });

export const folderOf = (directory: string, id: string): string => join(directory, "certificates", id);

export const certificateFile = (folder: string): string => join(folder, "certificate.pem");

/** A client gets all of them in each handshake; public authorities send two or three. */
const CHAIN_MAX = 10;
/**
 * The limit of the chain as PEM. OpenSSL's clients take 100 KiB of certificates (SSL_CTX_set_max_cert_list(3)), and to
 * compare a hundred names with those of a larger certificate takes seconds.
 */
export const CHAIN_CHARACTERS_MAX = 64 * 1024;

/** @throws AcmeError `file` if it is there and cannot be read */
export async function readCertificate(folder: string): Promise<StoredCertificate | undefined> {
  return certificateIn((await readState(certificateFile(folder))) ?? "");
}

/** The content of such a file, if it is complete. */
export function certificateIn(text: string): StoredCertificate | undefined {
  const key = /-----BEGIN PRIVATE KEY-----[^-]+-----END PRIVATE KEY-----\n/.exec(text)?.[0];
  return key === undefined ? undefined : parse(key, text.slice(text.indexOf("-----BEGIN CERTIFICATE-----")));
}

/** Changes whenever the file is replaced; undefined if there is none. */
export async function certificateMark(folder: string): Promise<string | undefined> {
  const found = await stat(certificateFile(folder)).catch(() => undefined);
  return found && `${found.ino} ${found.mtimeMs} ${found.size}`;
}

export const writeCertificate = (folder: string, { key, cert }: KeyPair): Promise<void> =>
  writeState(certificateFile(folder), key + cert);

/**
 * Key and chain, if they are whole and belong together. Other text between the certificates is left out: OpenSSL might
 * read more of it as a certificate than was checked here.
 */
export function parse(key: string, text: string): StoredCertificate | undefined {
  if (text.length > CHAIN_CHARACTERS_MAX) return undefined;
  const [leaf, ...issuers] = certificatesOf(text);
  if (leaf === undefined || issuers.includes(undefined) || issuers.length >= CHAIN_MAX) return undefined;
  // An invalid time would never come.
  if ([leaf.validFrom, leaf.validTo].some((time) => Number.isNaN(Date.parse(time)))) return undefined;
  try {
    const privateKey = createPrivateKey(key);
    const cert = [leaf, ...issuers].map(String).join("");
    return leaf.checkPrivateKey(privateKey) ? { key, cert, leaf, privateKey } : undefined;
  } catch {
    return undefined;
  }
}

/** All that can be read, wanted or not. */
export async function readCertificates(directory: string): Promise<StoredCertificate[]> {
  const ids = await namesIn(join(directory, "certificates"));
  const kept = await Promise.all(
    ids.map((id) => readCertificate(folderOf(directory, id)).catch(() => undefined)),
  );
  return kept.filter((one) => one !== undefined);
}

/**
 * The certificate to serve until the wanted one is there: one for other names that covers as many of its names as
 * possible, the first among them, with a key of the same kind.
 *
 * @param kept all that there are
 */
export function standIn(
  kept: readonly StoredCertificate[],
  wanted: OrderedCertificate,
): StoredCertificate | undefined {
  const kind = wanted.keyType === "ecdsa-p256" ? "ec" : "rsa";
  const covered = ({ leaf }: StoredCertificate): number =>
    wanted.names.filter((name) => coversName(leaf, name)).length;
  const usable = kept.filter(
    (one) => one.privateKey.asymmetricKeyType === kind && coversName(one.leaf, wanted.names[0]!),
  );
  return usable.sort((a, b) => covered(b) - covered(a) || endOf(b) - endOf(a))[0];
}

const endOf = ({ leaf }: StoredCertificate): number => Date.parse(leaf.validTo);
