import { createHash, createPrivateKey, type KeyObject } from "node:crypto";
import { join } from "node:path";
import type { CertificateAuthorityConfig } from "../../model/serving.js";
import { isOwnAddress } from "../load/ownAddress.js";
import { AcmeError } from "./acmeError.js";
import {
  AcmeClient,
  type AcmeDirectory,
  externalBinding,
  keyAuthorization,
  publicJwk,
  type AcmeResource,
  type Signer,
} from "./acmeClient.js";
import type { Clock } from "./clock.js";
import { RateLimits } from "./rateLimits.js";
import { Queue } from "../queue.js";
import { readJson, removeDrafts, writeJson, requiredFile } from "./stateFiles.js";
import { type AcmeResponse, Transport } from "./transport.js";
import { keyPem, newKey } from "./x509.js";

/** Under one name there may be an authority's staging directory first, and its real one later. */
export function accountIdOf({ name, directory }: CertificateAuthorityConfig): string {
  const hash = createHash("sha256").update(directory).digest("hex").slice(0, 8);
  return `${name}-${hash}`;
}

export const accountFile = (directory: string, config: CertificateAuthorityConfig): string =>
  join(directory, accountIdOf(config), "account.json");

export interface StoredAccount {
  /** PEM. */
  readonly key: string;
  /** The authority knows the account by this URL; absent until the authority has made the account. */
  readonly url?: string;
  readonly email?: string;
  /** The list of the account's orders, if the authority has one (RFC 8555, 7.1.2.1). */
  readonly orders?: string;
}

interface Account extends StoredAccount {
  readonly url: string;
  readonly signer: Signer;
}

/** An authority and the account there, which is made when it is needed first and kept on disk. */
export class AcmeAuthority {
  readonly limits: RateLimits;
  /** Limits parallel orders, for each authority, so that a slow authority does not delay others. */
  readonly ordering = new Queue(ORDERS_AT_ONCE);
  private readonly path: string;
  /** Whether this host had the address when it was looked at last. */
  private held = false;
  private looking: Promise<boolean> | undefined;
  private connected: Promise<AcmeClient> | undefined;
  private signedUp: Promise<Account> | undefined;

  /** @param directory where the accounts of all authorities are kept */
  constructor(
    private readonly config: CertificateAuthorityConfig,
    directory: string,
    private readonly clock: Clock,
    private readonly signal: AbortSignal,
  ) {
    const folder = join(directory, accountIdOf(config));
    this.path = accountFile(directory, config);
    this.limits = new RateLimits(folder, clock);
  }

  /** Address without which it is not asked; undefined if it is asked in any case. */
  get holderAddress(): string | undefined {
    return this.config.holderAddress;
  }

  /** Whether this host may ask it now. */
  mayBeAsked(): Promise<boolean> {
    const { holderAddress } = this.config;
    if (holderAddress === undefined) return Promise.resolve(true);
    this.looking ??= this.look(holderAddress).finally(() => (this.looking = undefined));
    return this.looking;
  }

  async directory(): Promise<AcmeDirectory> {
    return (await this.client()).directory();
  }

  /** Gets a public resource: the request has no signature. */
  async get(url: string): Promise<AcmeResource> {
    return (await this.client()).get(url);
  }

  /** @param payload undefined for POST-as-GET */
  post(url: string, payload?: unknown): Promise<AcmeResource> {
    return this.signed((client, signer) => client.post(signer, url, payload));
  }

  /** Does the same as `post`, for a response that is not JSON. */
  download(url: string): Promise<AcmeResponse> {
    return this.signed((client, signer) => client.postRaw(signer, url));
  }

  async keyAuthorization(token: string): Promise<string> {
    return keyAuthorization((await this.account()).signer.key, token);
  }

  /** URLs of the account's last orders, as far as the authority lists them. */
  async orders(): Promise<string[]> {
    const { orders } = await this.account();
    let last: string[] = [];
    let page = orders;
    for (let pages = 0; page !== undefined && pages < PAGES_MAX; pages++) {
      const { value, next }: AcmeResource = await this.post(page);
      const urls: unknown[] = Array.isArray(value["orders"]) ? value["orders"] : [];
      last = [...last, ...urls.filter((url) => typeof url === "string")].slice(-ORDERS_MAX);
      page = next;
    }
    return last;
  }

  private async look(holderAddress: string): Promise<boolean> {
    const held = await isOwnAddress(holderAddress);
    if (held && !this.held) {
      // Another host may have sent requests meanwhile, and its files here are newer.
      this.signedUp = undefined;
      this.limits.forget();
    }
    this.held = held;
    return held;
  }

  /** An account that the authority does not know is made again, with its old key. */
  private async signed<T>(request: (client: AcmeClient, signer: Signer) => Promise<T>): Promise<T> {
    const client = await this.client();
    try {
      return await request(client, (await this.account()).signer);
    } catch (error) {
      if (!(error instanceof AcmeError) || error.code !== "accountDoesNotExist") throw error;
      const stored = await readJson<StoredAccount>(this.path);
      if (stored?.key !== undefined) await writeJson(this.path, { key: stored.key });
      this.signedUp = undefined;
      return request(client, (await this.account()).signer);
    }
  }

  private client(): Promise<AcmeClient> {
    this.connected ??= this.connect().catch((error) => {
      this.connected = undefined;
      throw error;
    });
    return this.connected;
  }

  private async connect(): Promise<AcmeClient> {
    const { roots: path, directory } = this.config;
    const roots = path === undefined ? undefined : await requiredFile(path);
    return new AcmeClient(directory, new Transport({ roots, signal: this.signal }), this.clock);
  }

  private account(): Promise<Account> {
    this.signedUp ??= this.signUp().catch((error) => {
      this.signedUp = undefined;
      throw error;
    });
    return this.signedUp;
  }

  private async signUp(): Promise<Account> {
    await removeDrafts(join(this.path, ".."));
    const stored = await readJson<StoredAccount>(this.path);
    const known = stored?.key === undefined ? undefined : usableKey(stored.key);
    const key = known ?? (await newKey("ecdsa-p256"));
    const { email } = this.config;
    // The key is on disk before the authority learns it: an account that was made is found again by it.
    if (known === undefined) await writeJson(this.path, { key: keyPem(key) });
    const url = known === undefined ? undefined : stored?.url;
    const account = url === undefined ? await this.newAccount(key) : { ...stored, url, key: keyPem(key) };
    const signer: Signer = { key, header: { kid: account.url } };
    if (account.email !== email) {
      const contact = contactOf(email);
      await (await this.client()).post(signer, account.url, { contact });
      await writeJson(this.path, { ...account, email });
    }
    return { ...account, email, signer };
  }

  /** RFC 8555, 7.3: the same request finds an account that there is already. */
  private async newAccount(key: KeyObject): Promise<StoredAccount & { readonly url: string }> {
    const client = await this.client();
    const { newAccount, meta } = await client.directory();
    const { email, externalAccountBinding: external } = this.config;
    if (meta?.externalAccountRequired === true && external === undefined)
      throw new AcmeError("externalAccountRequired", "");
    const payload = {
      termsOfServiceAgreed: this.config.agreeToTerms,
      contact: contactOf(email),
      externalAccountBinding:
        external && externalBinding(key, external.keyId, await macKey(external.keyFile), newAccount),
    };
    const made = await client.post({ key, header: { jwk: publicJwk(key) } }, newAccount, payload);
    const { orders } = made.value;
    if (made.location === undefined) throw new AcmeError("badResponse", `${newAccount} named no account`);
    const account = {
      key: keyPem(key),
      url: made.location,
      email,
      ...(typeof orders === "string" ? { orders } : {}),
    };
    await writeJson(this.path, account);
    return account;
  }
}

/** The list is read to find an order whose response was lost. That order is recent, so old ones are not needed. */
const PAGES_MAX = 100;
const ORDERS_MAX = 20;

/** An authority responds to several at once gladly; all of two hundred would wait for each other. */
const ORDERS_AT_ONCE = 4;

const contactOf = (email: string | undefined): string[] => (email === undefined ? [] : [`mailto:${email}`]);

/** A private key; undefined if the text is not one. */
export function usableKey(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey(pem);
  } catch {
    return undefined;
  }
}

async function macKey(path: string): Promise<Buffer> {
  const text = (await requiredFile(path)).trim();
  if (text !== "" && /^[\w-]+=*$/.test(text)) return Buffer.from(text, "base64url");
  throw new AcmeError("file", `${path} is not a key in base64url`);
}
