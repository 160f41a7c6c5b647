import { HOUR_MS } from "../../model/text/duration.js";
import { createHash, createHmac, createPublicKey, type KeyObject, sign } from "node:crypto";
import * as z from "zod";
import { Untrusted } from "../../model/text/untrusted.js";
import { AcmeError, type AcmeProblem } from "./acmeError.js";
import { type Clock } from "./clock.js";
import type { AcmeResponse, Transport } from "./transport.js";

/** Requests of RFC 8555: the directory, nonces, signatures, and refusals as errors. */

/** RFC 8555, 7.1.1; `renewalInfo` of RFC 9773, `profiles` of draft-ietf-acme-profiles. */
export interface AcmeDirectory {
  readonly newNonce: string;
  readonly newAccount: string;
  readonly newOrder: string;
  readonly renewalInfo?: string;
  readonly meta?: {
    readonly externalAccountRequired?: boolean;
    readonly profiles?: Readonly<Record<string, string>>;
  };
}

/** JSON that an authority responded with, whose fields are checked where they are used. */
export interface AcmeResource {
  readonly value: Readonly<Record<string, unknown>>;
  /** `Location`: the URL of the created resource. */
  readonly location: string | undefined;
  /** When the authority wants to be asked again, in milliseconds since 1970. */
  readonly retryAt: number | undefined;
  /** URL of the next part of a list (RFC 8288). */
  readonly next: string | undefined;
}

/** The signing key, with the JWK for a new account, or the account URL for an existing one. */
export interface Signer {
  readonly key: KeyObject;
  readonly header: { readonly jwk: object } | { readonly kid: string };
}

export class AcmeClient {
  private nonces: string[] = [];
  private known: Promise<AcmeDirectory> | undefined;
  private knownSince = 0;

  constructor(
    private readonly url: string,
    private readonly transport: Transport,
    private readonly clock: Clock,
  ) {}

  /** Read again every hour, because an authority may change its URLs. */
  directory(): Promise<AcmeDirectory> {
    const age = this.clock.now() - this.knownSince;
    if (age < 0 || age > HOUR_MS) this.known = undefined;
    if (this.known === undefined) this.knownSince = this.clock.now();
    this.known ??= this.readDirectory().catch((error) => {
      this.known = undefined;
      throw error;
    });
    return this.known;
  }

  async get(url: string): Promise<AcmeResource> {
    return this.resource(url, this.checked(await this.transport.send("GET", url)));
  }

  /** @param payload undefined for POST-as-GET */
  async post(signer: Signer, url: string, payload?: unknown): Promise<AcmeResource> {
    return this.resource(url, await this.postRaw(signer, url, payload));
  }

  async postRaw({ key, header }: Signer, url: string, payload?: unknown): Promise<AcmeResponse> {
    // A nonce is for one request (RFC 8555, 6.5); a refusal for its sake brings another.
    for (let left = NONCES_MAX; ; left--) {
      const nonce = this.nonces.pop() ?? (await this.newNonce());
      const body = signedRequest(key, { ...header, nonce, url }, payload);
      const response = await this.transport.send("POST", url, body, payload === undefined);
      try {
        return this.checked(response);
      } catch (error) {
        if (!(error instanceof AcmeError) || error.code !== "badNonce" || left === 1) throw error;
      }
    }
  }

  private async readDirectory(): Promise<AcmeDirectory> {
    const { value } = await this.get(this.url);
    const missing = ["newNonce", "newAccount", "newOrder"].filter((name) => typeof value[name] !== "string");
    if (missing.length === 0) return value as unknown as AcmeDirectory;
    throw new AcmeError(
      "badResponse",
      `${this.url} is not an ACME directory: it has no ${missing.join(", ")}`,
    );
  }

  private async newNonce(): Promise<string> {
    const { newNonce } = await this.directory();
    this.checked(await this.transport.send("HEAD", newNonce));
    const nonce = this.nonces.pop();
    if (nonce === undefined) throw new AcmeError("badResponse", `${newNonce} gave no nonce`);
    return nonce;
  }

  private checked(response: AcmeResponse): AcmeResponse {
    const nonce = response.headers["replay-nonce"];
    if (typeof nonce === "string" && /^[\w-]+$/.test(nonce)) this.nonces.push(nonce);
    // Old ones are refused; the newest are taken first.
    if (this.nonces.length > NONCES_MAX) this.nonces.shift();
    if (response.status >= 200 && response.status < 300) return response;
    throw refusal(response, retryAt(response, this.clock));
  }

  private resource(url: string, response: AcmeResponse): AcmeResource {
    const value = parseJson(response.body);
    if (typeof value !== "object" || value === null)
      throw new AcmeError(
        "badResponse",
        `the response of ${url} is not JSON, or has more than ${VALUES_MAX} values`,
      );
    const next = linkOf(response, "next");
    return {
      value: value as Record<string, unknown>,
      location: absolute(response.headers.location, url),
      retryAt: retryAt(response, this.clock),
      next: absolute(next, url),
    };
  }
}

const NONCES_MAX = 10;

/** RFC 9110, 10.2.3: seconds, or a date, which is the authority's. */
export function retryAt({ headers }: AcmeResponse, clock: Clock): number | undefined {
  const text = headers["retry-after"];
  if (text === undefined) return undefined;
  if (/^\d{1,9}$/.test(text)) return clock.now() + Number(text) * 1_000;
  const date = Date.parse(text);
  if (Number.isNaN(date)) return undefined;
  // The authority's response shows how much the clocks differ.
  const theirs = Date.parse(headers.date ?? "");
  return Number.isNaN(theirs) ? date : clock.now() + Math.max(0, date - theirs);
}

/** A problem document (RFC 7807) as an error; without one, the HTTP status as an error. */
function refusal(response: AcmeResponse, retry: number | undefined): AcmeError {
  const value = parseJson(response.body);
  const problem = problemOf(value);
  const instance = problem?.instance ?? pageOf(linkOf(response, "terms-of-service"));
  if (problem !== undefined && problem.code !== "") {
    const subproblems = subproblemsOf(value);
    return new AcmeError(problem.code, problem.detail, { subproblems, instance, retryAt: retry });
  }
  const { status } = response;
  const code = status === 429 ? "rateLimited" : status >= 500 ? "serverInternal" : "malformed";
  return new AcmeError(code, problem?.detail || `the server responded with ${status}`, { retryAt: retry });
}

const TYPE = /^urn:(?:ietf:params:)?acme:error:([A-Za-z]{1,64})$/;

/** The fields of a problem document; undefined if the value is not one. */
export function problemOf(value: unknown): AcmeProblem | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { type, detail, identifier, instance } = value as Record<string, unknown>;
  const named = (identifier as { value?: unknown } | null | undefined)?.value;
  return {
    code: (typeof type === "string" && TYPE.exec(type)?.[1]) || "",
    detail: typeof detail === "string" ? detail : "",
    name: typeof named === "string" ? named : undefined,
    instance: pageOf(instance),
  };
}

/** A web page that an authority names, as it may be shown: without controls, and not longer than anybody would type. */
export function pageOf(value: unknown): string | undefined {
  if (typeof value !== "string" || !URL.canParse(value)) return undefined;
  const { protocol, href } = new URL(value);
  return /^https?:/.test(protocol) && href.length <= PAGE_CHARACTERS_MAX ? href : undefined;
}

const PAGE_CHARACTERS_MAX = 500;

function subproblemsOf(value: unknown): AcmeProblem[] {
  const { subproblems } = value as { subproblems?: unknown };
  if (!Array.isArray(subproblems)) return [];
  return subproblems.map(problemOf).filter((one) => one !== undefined && one.code !== "") as AcmeProblem[];
}

/** The target of a link relation; an authority writes them as plain as RFC 8555 does. */
function linkOf({ headers }: AcmeResponse, relation: string): string | undefined {
  const text = [headers.link ?? []].flat().join(", ");
  for (const [, url, parameters] of text.matchAll(/<([^<>]*)>([^<]*)/g)) {
    const found = parameters!
      .split(/[;,]/)
      .some((each) => each.trim().replaceAll('"', "") === `rel=${relation}`);
    if (found) return url;
  }
  return undefined;
}

const absolute = (url: string | undefined, base: string): string | undefined =>
  url !== undefined && URL.canParse(url, base) ? new URL(url, base).href : undefined;

export const parseJson = (text: string): unknown =>
  new Untrusted(Buffer.from(text)).opened(z.unknown(), VALUES_MAX);

/** An order of a hundred names has a thousand. A megabyte of brackets would hold up the process. */
const VALUES_MAX = 20_000;

// Signed requests (RFC 7515) as ACME wants them: flattened JSON, ES256 for accounts, HS256 for external ones.

/** @param payload undefined for POST-as-GET (RFC 8555, 6.3) */
function signedRequest(key: KeyObject, header: object, payload: unknown): string {
  return flattened({ alg: "ES256", ...header }, payload, (input) =>
    sign("sha256", input, { key, dsaEncoding: "ieee-p1363" }),
  );
}

/** Proves to the authority that an account belongs to one of its customers (RFC 8555, 7.3.4). */
export function externalBinding(account: KeyObject, keyId: string, macKey: Buffer, url: string): unknown {
  const header = { alg: "HS256", kid: keyId, url };
  const mac = (input: Buffer): Buffer => createHmac("sha256", macKey).update(input).digest();
  return JSON.parse(flattened(header, publicJwk(account), mac));
}

/** The key authorization that the authority expects for a token (RFC 8555, 8.1). */
export function keyAuthorization(account: KeyObject, token: string): string {
  // RFC 7638: the required members in the order of their names, which is the order they have here.
  const thumbprint = createHash("sha256")
    .update(JSON.stringify(publicJwk(account)))
    .digest("base64url");
  return `${token}.${thumbprint}`;
}

export function publicJwk(key: KeyObject): object {
  const { crv, kty, x, y } = createPublicKey(key).export({ format: "jwk" });
  return { crv, kty, x, y };
}

function flattened(header: object, payload: unknown, signature: (input: Buffer) => Buffer): string {
  const protectedHeader = base64url(JSON.stringify(header));
  const content = payload === undefined ? "" : base64url(JSON.stringify(payload));
  const made = signature(Buffer.from(`${protectedHeader}.${content}`));
  return JSON.stringify({
    protected: protectedHeader,
    payload: content,
    signature: made.toString("base64url"),
  });
}

const base64url = (text: string): string => Buffer.from(text).toString("base64url");
