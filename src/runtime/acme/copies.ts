import { DAY_MS, HOUR_MS } from "../../model/text/duration.js";
import type { KeyObject, X509Certificate } from "node:crypto";
import { AcmeError } from "./acmeError.js";
import { accountFile, accountIdOf, type StoredAccount, usableKey } from "./authority.js";
import {
  certificateFile,
  certificateIn,
  folderOf,
  type StoredCertificate,
  readCertificate,
  writeCertificate,
} from "./certificateFile.js";
import type { KeyType, OrderedCertificate } from "./acmeHost.js";
import { unusable } from "./replacement.js";
import { readJson, readState, writeJson } from "./stateFiles.js";
import { keyPem } from "./x509.js";
import { rootCertificates } from "node:tls";
import type { CertificateAuthorityConfig } from "../../model/serving.js";
import { certificatesOf } from "../load/certificateExpiry.js";

/** The copies that one host of a pair sends to the other host, by id. */
export interface Copies {
  /** Account keys. The owner of a key gets all other account data from the authority (RFC 8555, 7.3.1). */
  readonly accounts: Readonly<Record<string, string>>;
  /** Key and chain, as they are stored. */
  readonly certificates: Readonly<Record<string, string>>;
}

/** A line for each copy that was taken or refused. Copies that the host already had are not listed. */
export interface CopiesResult {
  readonly taken: readonly string[];
  readonly refused: readonly string[];
}

/** Paths of the files that are copied, whether the files exist or not. */
export const copiedFiles = (directory: string, wanted: readonly OrderedCertificate[]): readonly string[] => [
  ...new Set(wanted.map(({ authority }) => accountFile(directory, authority))),
  ...wanted.map(({ id }) => certificateFile(folderOf(directory, id))),
];

/** @throws AcmeError `file` if something cannot be read */
export async function copiesOf(directory: string, wanted: readonly OrderedCertificate[]): Promise<Copies> {
  const accounts: Record<string, string> = {};
  const certificates: Record<string, string> = {};
  for (const { id, authority } of wanted) {
    const account = await readJson<StoredAccount>(accountFile(directory, authority));
    if (account?.key !== undefined) accounts[accountIdOf(authority)] = account.key;
    const kept = await readCertificate(folderOf(directory, id));
    if (kept !== undefined) certificates[id] = kept.key + kept.cert;
  }
  return { accounts, certificates };
}

/**
 * Takes only copies that the config of this host wants, because an attacker may control the other host. The other host
 * cannot name a file, replace an account or bring back an old certificate.
 *
 * @param message from the other host, not validated
 */
export async function takeCopies(
  directory: string,
  wanted: readonly OrderedCertificate[],
  message: unknown,
  now: number,
): Promise<CopiesResult> {
  const taken: string[] = [];
  const refused: string[] = [];
  const attempt = async (what: string, take: () => Promise<boolean>): Promise<void> => {
    try {
      if (await take()) taken.push(what);
    } catch (error) {
      refused.push(`${what}: ${reasonOf(error)}`);
    }
  };
  for (const [id, authority] of new Map(wanted.map((one) => [accountIdOf(one.authority), one.authority]))) {
    const sent = textIn(message, "accounts", id);
    if (sent === undefined) continue;
    await attempt(`account at ${authority.name}`, () => takeAccount(accountFile(directory, authority), sent));
  }
  for (const one of wanted) {
    const sent = textIn(message, "certificates", one.id);
    if (sent === undefined) continue;
    const folder = folderOf(directory, one.id);
    await attempt(`certificate for ${one.names.join(", ")}`, () => takeCertificate(folder, one, sent, now));
  }
  return { taken, refused: [...refused, ...unwanted(message, wanted)] };
}

/** The other host tries again: a deployment reaches one host after the other. */
function unwanted(message: unknown, wanted: readonly OrderedCertificate[]): string[] {
  const sent = ownValue(message, "certificates");
  if (typeof sent !== "object" || sent === null || Array.isArray(sent)) return [];
  const ids = new Set(wanted.map(({ id }) => id));
  return Object.keys(sent)
    .filter((id) => !ids.has(id))
    .slice(0, UNWANTED_MAX)
    .map(
      (id) => `certificate ${id.slice(0, ID_CHARACTERS_MAX)}: the config of that host does not contain it`,
    );
}

/** A message has room for millions, and the response would be as many lines. */
const UNWANTED_MAX = 500;
const ID_CHARACTERS_MAX = 100;

/** RSA with 4096 bits and a chain of ten certificates are a quarter of it. */
const TEXT_MAX = 128 * 1024;

function textIn(message: unknown, kind: keyof Copies, id: string): string | undefined {
  const ofKind = ownValue(message, kind);
  const text = ownValue(ofKind, id);
  return typeof text === "string" && text.length <= TEXT_MAX ? text : undefined;
}

const ownValue = (from: unknown, name: string): unknown =>
  typeof from === "object" && from !== null && Object.hasOwn(from, name)
    ? (from as Record<string, unknown>)[name]
    : undefined;

/** An existing account is kept: an attacker who controls the other host must not replace it. */
async function takeAccount(file: string, sent: string): Promise<boolean> {
  const stored = await readJson<StoredAccount>(file);
  if (stored?.key !== undefined) return false;
  const key = usableKey(sent);
  if (key === undefined || !isOfType(key, "ecdsa-p256"))
    throw new CopyRefused("its key is not an ECDSA P-256 key");
  await writeJson(file, { key: keyPem(key) });
  return true;
}

async function takeCertificate(
  folder: string,
  { names, keyType, authority }: OrderedCertificate,
  sent: string,
  now: number,
): Promise<boolean> {
  const found = certificateIn(sent);
  if (found === undefined) throw new CopyRefused("it is not a complete certificate with the matching key");
  const here = await readCertificate(folder);
  const why = unusable(found, names, now, here);
  if (why !== undefined) throw new CopyRefused(why);
  if (!isOfType(found.privateKey, keyType)) throw new CopyRefused(`its key is not of the type ${keyType}`);
  const { from, to } = timesOf(found);
  // Nothing would ever be newer.
  if (from > now + HOUR_MS) throw new CopyRefused(`it is not valid before ${new Date(from).toISOString()}`);
  // The same certificate, or an older one: the other host will get the newer one.
  if (here !== undefined && timesOf(here).to > now && timesOf(here).from >= from) return false;
  if (livesTooLong(found, here))
    throw new CopyRefused(
      `it is valid for more than ${LIFE_DAYS_MAX} days, until ${new Date(to).toISOString()}`,
    );
  if (!(await isOfIssuer(found, here, authority)))
    throw new CopyRefused(
      "neither the issuer of the certificate that it would replace signed it, nor one of the authority's roots",
    );
  await writeCertificate(folder, found);
  return true;
}

const timesOf = ({ leaf }: StoredCertificate): { from: number; to: number } => ({
  from: Date.parse(leaf.validFrom),
  to: Date.parse(leaf.validTo),
});

function isOfType({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject, type: KeyType): boolean {
  if (type === "ecdsa-p256")
    return asymmetricKeyType === "ec" && asymmetricKeyDetails?.namedCurve === "prime256v1";
  return (
    asymmetricKeyType === "rsa" && asymmetricKeyDetails?.modulusLength === Number(type.slice("rsa-".length))
  );
}

class CopyRefused extends Error {}

const reasonOf = (error: unknown): string =>
  error instanceof AcmeError ? error.detail : (error as Error).message;

// Whether a certificate may take the place of another one: the holder of a key of the other host could issue a certificate
// for any name, for a hundred years, and it would be served from then on.

/** A certificate with the chain that it is sent with, as PEM. */
interface Chained {
  readonly leaf: X509Certificate;
  readonly cert: string;
}

/**
 * Whether an issuer of the certificate that is replaced signed it, or one that the config names: `roots` of the
 * authority, or without them those that Node brings along.
 *
 * @param here the certificate that it replaces; without one there is nothing to compare with
 */
export async function isOfIssuer(
  sent: Chained,
  here: Chained | undefined,
  { roots }: Pick<CertificateAuthorityConfig, "roots">,
): Promise<boolean> {
  if (here === undefined) return true;
  const before = readable(here.cert).slice(1);
  if (leadsTo(sent, before)) return true;
  // Some authorities send no chain: then only the names of the issuers can be compared.
  if (before.length === 0 && !isSelfIssued(sent.leaf) && sent.leaf.issuer === here.leaf.issuer) return true;
  const named = roots === undefined ? rootCertificates.join("\n") : await readState(roots).catch(() => "");
  return leadsTo(sent, readable(named ?? ""));
}

/** Longest life of a certificate that is taken, in days, unless the one before it has a longer one (CA/Browser Forum). */
export const LIFE_DAYS_MAX = 398;

export function livesTooLong({ leaf }: Chained, here: Chained | undefined): boolean {
  const most = Math.max(LIFE_DAYS_MAX * DAY_MS, here === undefined ? 0 : lifeOf(here.leaf));
  return lifeOf(leaf) > most;
}

const lifeOf = ({ validFrom, validTo }: X509Certificate): number =>
  Date.parse(validTo) - Date.parse(validFrom);

const isSelfIssued = (leaf: X509Certificate): boolean => leaf.issuer === leaf.subject;

/** Whether signatures lead from the leaf by its chain to one of the certificates. */
function leadsTo({ cert }: Chained, anchors: readonly X509Certificate[]): boolean {
  const [leaf, ...chain] = readable(cert);
  let at = leaf!;
  // Each step takes one certificate of the chain, so a circle ends.
  for (let steps = 0; steps <= chain.length; steps++) {
    if (anchors.some((anchor) => isIssuedBy(at, anchor))) return true;
    const next = chain.find((one) => one !== at && isIssuedBy(at, one));
    if (next === undefined) return false;
    at = next;
  }
  return false;
}

function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return issuer.ca && certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

const readable = (text: string): X509Certificate[] => certificatesOf(text).filter((one) => one !== undefined);
