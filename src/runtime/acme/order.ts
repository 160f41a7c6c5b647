import { DAY_MS, MINUTE_MS, SECOND_MS } from "../../model/text/duration.js";
import { createPrivateKey } from "node:crypto";
import { isIP } from "node:net";
import { join } from "node:path";
import type { AcmeHost, OrderedCertificate } from "./acmeHost.js";
import { AcmeError, type AcmeProblem } from "./acmeError.js";
import { type AcmeAuthority, usableKey } from "./authority.js";
import {
  CHAIN_CHARACTERS_MAX,
  contentsOf,
  type StoredCertificate,
  parse,
  readCertificate,
  writeCertificate,
} from "./certificateFile.js";
import type { OpenChallenge, OpenChallenges } from "./challenges.js";
import { type AcmeResource, problemOf } from "./acmeClient.js";
import type { Clock } from "./clock.js";
import { unusable } from "./replacement.js";
import { readJson, removeState, writeJson } from "./stateFiles.js";
import { certificateRequest, keyPem, newKey } from "./x509.js";

/** An order in progress, written to disk before the request to the authority, so that a restart continues the order. */
interface Pending {
  /** PEM of the future certificate's key. */
  readonly key: string;
  /** URL of the order; absent until the authority has responded. */
  readonly order?: string;
  /** When it was begun, in milliseconds since 1970. */
  readonly since: number;
  /** Challenges that the authority may be validating now. */
  readonly challenges: readonly OpenChallenge[];
}

export interface OrderOptions {
  readonly wanted: OrderedCertificate;
  readonly authority: AcmeAuthority;
  /** The folder in which the certificate is kept. */
  readonly folder: string;
  readonly challenges: OpenChallenges;
  readonly clock: Clock;
  /** Why listeners cannot use a certificate; undefined if they can. */
  readonly unfit: AcmeHost["unfit"];
  readonly signal: AbortSignal;
}

/** The certificate that this one takes the place of (RFC 9773, 5). */
export interface Replaced {
  readonly id: string | undefined;
  /** Whether the authority itself asks for its renewal. */
  readonly asked: boolean;
}

/** Gets one certificate (RFC 8555, 7.4). Each step can be the last of this process, and the first of the next. */
export class Order {
  private readonly path: string;
  private pending: Pending | undefined;

  constructor(private readonly options: OrderOptions) {
    this.path = join(options.folder, "order.json");
  }

  /** Responds to the challenges of before a restart, which the authority may be validating. Does not ask the authority. */
  async resume(): Promise<boolean> {
    const { challenges, wanted, signal } = this.options;
    const pending = await this.read();
    if (pending === undefined) return false;
    if (pending.challenges.length > 0) await challenges.open(wanted, pending.challenges, signal);
    return true;
  }

  /** Drops the order in progress, without a request to the authority. */
  async drop(): Promise<void> {
    const { challenges, wanted } = this.options;
    this.pending = undefined;
    await removeState(this.path);
    challenges.close(wanted);
  }

  /** @throws AcmeError if the authority refuses; an order that can still become a certificate is kept */
  async complete(replaced: Replaced): Promise<StoredCertificate> {
    const { wanted, folder, authority } = this.options;
    try {
      const done = await this.finished();
      if (done !== undefined) return done;
      const url = await this.url(replaced);
      const order = await this.prove(url);
      const kept = await this.fetch(await this.finalize(url, order));
      await writeCertificate(folder, kept);
      await authority.limits.issued(wanted.names);
      await this.drop();
      return kept;
    } catch (error) {
      if (isOver(error)) await this.drop();
      throw error instanceof OrderOver ? error.reason : error;
    }
  }

  /** The certificate was written, and then the process died. */
  private async finished(): Promise<StoredCertificate | undefined> {
    const { folder } = this.options;
    this.pending ??= await this.read();
    const kept = await readCertificate(folder);
    if (kept === undefined || kept.key !== this.pending?.key) return undefined;
    await this.drop();
    return kept;
  }

  private async read(): Promise<Pending | undefined> {
    const read = await readJson<Pending>(this.path);
    if (read?.key === undefined || usableKey(read.key) === undefined || read.since === undefined)
      return undefined;
    return { ...read, key: read.key, since: read.since, challenges: read.challenges ?? [] };
  }

  private async save(pending: Pending): Promise<Pending> {
    this.pending = pending;
    await writeJson(this.path, pending);
    return pending;
  }

  /** The order's URL: that of before, or of one whose response did not arrive, or of a new one. */
  private async url(replaced: Replaced): Promise<string> {
    const { authority, wanted } = this.options;
    const before = this.pending;
    const now = this.options.clock.now();
    const isOld = Math.abs(now - (before?.since ?? now)) > ORDER_MS;
    if (before?.order !== undefined && !isOld && (await this.isKnown(before.order))) return before.order;
    // The response to the last request may have been lost; then only the authority knows the order.
    const lost =
      before === undefined || before.order !== undefined ? undefined : await this.lost().catch(passing);
    const key = before?.key ?? keyPem(await newKey(wanted.keyType));
    const profile = await this.profile();
    // Checked before the order is on disk: a restart must not continue an order that is not allowed.
    if (lost === undefined) await authority.limits.order(wanted.names, replaced.asked);
    const pending = await this.save({ key, since: now, challenges: [] });
    const order = lost ?? (await this.create(profile, replaced.id));
    await this.save({ ...pending, order });
    return order;
  }

  /** An authority forgets orders, and responds as if they were another account's. */
  private async isKnown(url: string): Promise<boolean> {
    try {
      return (await this.request(url)).value["status"] !== "invalid";
    } catch (error) {
      if (error instanceof AcmeError && FORGOTTEN.has(error.code)) return false;
      throw error;
    }
  }

  private async lost(): Promise<string | undefined> {
    const { authority, wanted } = this.options;
    for (const url of (await authority.orders()).reverse()) {
      const { value } = await this.request(url);
      const open = value["status"] === "pending" || value["status"] === "ready";
      if (open && sameIdentifiers(value["identifiers"], wanted.names)) return url;
    }
    return undefined;
  }

  private async create(profile: object, replaces: string | undefined): Promise<string> {
    const { authority, wanted } = this.options;
    const { newOrder, renewalInfo } = await authority.directory();
    const payload = { identifiers: wanted.names.map(identifierOf), ...profile };
    const replacing = replaces !== undefined && renewalInfo !== undefined;
    const { location } = await this.request(newOrder, replacing ? { ...payload, replaces } : payload).catch(
      (error) => {
        // Not every authority knows the certificate any more; which one is replaced only helps it to plan.
        const refused =
          replacing && error instanceof AcmeError && !REFUSED_FOR_ANOTHER_REASON.has(error.code);
        if (refused) return this.request(newOrder, payload);
        throw error;
      },
    );
    if (location === undefined) throw new AcmeError("badResponse", `${newOrder} named no order`);
    return location;
  }

  /** The profile of the config; default: none, or `shortlived` for addresses, as public authorities require. */
  private async profile(): Promise<{ readonly profile?: string }> {
    const { authority, wanted } = this.options;
    const offered = Object.keys((await authority.directory()).meta?.profiles ?? {});
    const { profile } = wanted.authority;
    if (profile !== undefined && !offered.includes(profile)) {
      const list = offered.length === 0 ? "offers no profiles" : `offers ${offered.join(", ")}`;
      throw new AcmeError("invalidProfile", `${profile} is not known there; it ${list}`);
    }
    if (profile !== undefined) return { profile };
    const addresses = wanted.names.some((name) => isIP(name) !== 0);
    return addresses && offered.includes(SHORT_LIVED) ? { profile: SHORT_LIVED } : {};
  }

  /** Proves every name. Resolves with the order when it is not pending any more. */
  private async prove(url: string): Promise<AcmeResource> {
    const { wanted, challenges } = this.options;
    const order = await this.request(url);
    if (order.value["status"] !== "pending") return order;
    const open = await this.openAuthorizations(order);
    // Those that the authority is validating already come first.
    const inOrder = [...open.filter(({ asked }) => asked), ...open.filter(({ asked }) => !asked)];
    if (open.length > 0) await challenges.eachRound(wanted, inOrder, (round) => this.proveRound(round));
    return this.poll(url, (status) => status !== "pending");
  }

  private async proveRound(round: readonly OpenAuthorization[]): Promise<void> {
    const { wanted, challenges, signal } = this.options;
    await this.save({ ...this.pending!, challenges: round.map(({ challenge }) => challenge) });
    await challenges.open(wanted, this.pending!.challenges, signal);
    for (const { url: at, asked } of round) if (!asked) await this.request(at, {});
    const refusals: AcmeProblem[] = [];
    for (const { authorization, challenge } of round) {
      const { value } = await this.poll(authorization, (status) => status !== "pending");
      if (value["status"] !== "valid") refusals.push(refusalOf(value, challenge));
    }
    await this.refuse(refusals);
  }

  private async openAuthorizations(order: AcmeResource): Promise<OpenAuthorization[]> {
    const { authority, wanted } = this.options;
    const open: OpenAuthorization[] = [];
    const urls = urlsIn(order.value["authorizations"]);
    // The order has an authorization for each identifier (RFC 8555, 7.1.3).
    if (urls.length > wanted.names.length)
      throw new OrderOver(
        new AcmeError("badResponse", "the authority requires proof of more names than the order has"),
      );
    for (const url of urls) {
      const { value } = await this.request(url);
      if (value["status"] === "valid") continue;
      const name = this.nameOf(value);
      if (value["status"] !== "pending") await this.refuse([refusalOf(value, { name })]);
      const offered = challengesIn(value);
      const found = offered.find(({ type }) => type === wanted.challenge);
      if (found === undefined) {
        const types = offered.map(({ type }) => type).join(", ") || "none";
        throw new OrderOver(
          new AcmeError(
            "noChallenge",
            `the authority does not offer the challenge ${wanted.challenge}, but ${types}`,
          ),
        );
      }
      const challenge = {
        type: wanted.challenge,
        name,
        token: found.token,
        keyAuthorization: await authority.keyAuthorization(found.token),
      };
      open.push({ authorization: url, url: found.url, asked: found.status !== "pending", challenge });
    }
    return open;
  }

  /** The name of an authorization, as the config writes it. @throws OrderOver if the order does not have it */
  private nameOf({ identifier, wildcard }: AcmeResource["value"]): string {
    const { value } = (identifier ?? {}) as { value?: unknown };
    // RFC 8555, 7.1.4: the identifier of a wildcard's is the domain.
    const asked = wildcard === true ? `*.${String(value)}` : value;
    const found = this.options.wanted.names.find((name) => canonical(name) === asked);
    if (found !== undefined) return found;
    throw new OrderOver(
      new AcmeError("badResponse", "the authority requires proof of a name that is not in the order"),
    );
  }

  /** @throws OrderOver for names that were not proved, which the authority counts */
  private async refuse(problems: readonly AcmeProblem[]): Promise<void> {
    const [first] = problems;
    if (first === undefined) return;
    await this.options.authority.limits.failed(problems.map(({ name }) => name!));
    throw new OrderOver(new AcmeError(first.code, first.detail, { subproblems: problems }));
  }

  private async finalize(url: string, order: AcmeResource): Promise<AcmeResource> {
    const { wanted } = this.options;
    const { status } = order.value;
    if (status === "invalid") throw new OrderOver(errorOf(order));
    if (status === "ready") {
      const csr = await certificateRequest(wanted.names, createPrivateKey(this.pending!.key));
      await this.request(urlOf(order, "finalize"), { csr: csr.toString("base64url") }).catch((error) => {
        // The authority also responds this if it already processes the order (RFC 8555, 7.4).
        if (!(error instanceof AcmeError)) throw error;
        if (error.code !== "orderNotReady") throw error.afterProof();
      });
    }
    const done = await this.poll(url, (now) => now === "valid" || now === "invalid");
    if (done.value["status"] === "invalid") throw new OrderOver(errorOf(done).afterProof());
    return done;
  }

  private async fetch(order: AcmeResource): Promise<StoredCertificate> {
    const { authority, wanted } = this.options;
    const { body } = await authority.download(urlOf(order, "certificate"));
    const kept = parse(this.pending!.key, body);
    const why = kept === undefined ? noCertificate(body) : await this.fault(kept);
    if (kept !== undefined && why === undefined) return kept;
    // The authority counts it all the same.
    await authority.limits.issued(wanted.names);
    throw new OrderOver(new AcmeError("unusableCertificate", why!));
  }

  /** Why a certificate cannot replace the current one; undefined if it can. */
  async fault(kept: StoredCertificate): Promise<string | undefined> {
    const { wanted, clock, unfit, folder } = this.options;
    const here = await readCertificate(folder);
    return unusable(kept, wanted.names, clock.now(), here) ?? unfit(contentsOf(wanted, kept));
  }

  private request(url: string, payload?: unknown): Promise<AcmeResource> {
    this.options.signal.throwIfAborted();
    return this.options.authority.post(url, payload);
  }

  /** Polls until the status is the expected one, as often as the authority permits. */
  private async poll(url: string, isDone: (status: unknown) => boolean): Promise<AcmeResource> {
    const { clock, signal } = this.options;
    const end = clock.elapsed() + POLL_MS;
    for (let pause = POLL_FIRST_MS; ; pause = Math.min(POLL_MOST_MS, pause * 2)) {
      const found = await this.request(url);
      if (isDone(found.value["status"])) return found;
      const wished = found.retryAt === undefined ? pause : found.retryAt - clock.now();
      const wait = Math.min(Math.max(wished, POLL_FIRST_MS), MINUTE_MS);
      if (clock.elapsed() + wait > end)
        throw new AcmeError("timeout", "the authority has not finished after 10 minutes");
      await clock.wait(wait, signal);
    }
  }
}

function noCertificate({ length }: string): string {
  return length > CHAIN_CHARACTERS_MAX
    ? `it has ${length} characters with its chain, and ${CHAIN_CHARACTERS_MAX} are allowed`
    : "it is not a valid certificate for the key of the request";
}

const SHORT_LIVED = "shortlived";
/** An order that an authority neither ends nor forgets would keep every later one from being made. */
const ORDER_MS = DAY_MS;
const POLL_MS = 10 * MINUTE_MS;
const POLL_FIRST_MS = SECOND_MS / 4;
const POLL_MOST_MS = 5 * SECOND_MS;
/** How an authority responds for an order that it does not know (RFC 8555 names no type). */
const FORGOTTEN = new Set(["malformed", "unauthorized", "accountDoesNotExist"]);
const REFUSED_FOR_ANOTHER_REASON = new Set([
  ...["rateLimited", "rejectedIdentifier", "unsupportedIdentifier", "invalidProfile", "userActionRequired"],
  ...["unreachable", "untrusted", "clock", "accountDoesNotExist", "badNonce", "badResponse"],
]);

/** The order cannot become a certificate any more. */
class OrderOver extends Error {
  constructor(readonly reason: AcmeError) {
    super(reason.message);
  }
}

const isOver = (error: unknown): boolean =>
  error instanceof OrderOver || (error instanceof AcmeError && DEADLY.has(error.code));

/** Refusals of a request that would be refused again in the same order. */
const DEADLY = new Set(["badCSR", "badPublicKey", "rejectedIdentifier", "invalidProfile"]);

/** An authority that lists no orders, or fails to, is treated as if there were none: a new order is made. */
const passing = (error: unknown): undefined => {
  if (error instanceof AcmeError && error.code !== "unreachable") return undefined;
  throw error;
};

interface OpenAuthorization {
  readonly authorization: string;
  /** The challenge's URL. */
  readonly url: string;
  /** Whether the authority was asked to look already. */
  readonly asked: boolean;
  readonly challenge: OpenChallenge;
}

/** Reads the JSON of an order and its authorizations. Nothing in it can be relied on without a check. */

interface OfferedChallenge {
  readonly type: string;
  readonly url: string;
  readonly token: string;
  readonly status: string;
  readonly error?: unknown;
}

function challengesIn({ challenges }: AcmeResource["value"]): OfferedChallenge[] {
  const list = Array.isArray(challenges) ? (challenges as Partial<OfferedChallenge>[]) : [];
  return list.filter(
    (one): one is OfferedChallenge =>
      typeof one?.type === "string" && typeof one.url === "string" && isToken(one),
  );
}

/** A token goes into a path: RFC 8555, 8.3 has it in base64url. */
const isToken = ({ token }: { token?: unknown }): boolean =>
  typeof token === "string" && /^[\w-]{16,512}$/.test(token);

const urlsIn = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((url) => typeof url === "string") : [];

/** @throws AcmeError `badResponse` if the order does not name it */
function urlOf({ value }: AcmeResource, field: "finalize" | "certificate"): string {
  const url = value[field];
  if (typeof url === "string") return url;
  throw new AcmeError("badResponse", `the order has no ${field} that is a URL`);
}

/** Why a name was not proved, from its challenge. */
function refusalOf(authorization: AcmeResource["value"], { name }: { readonly name: string }): AcmeProblem {
  const errors = challengesIn(authorization).map(({ error }) => problemOf(error));
  const found = errors.find((error) => error !== undefined && error.code !== "");
  if (found !== undefined) return { ...found, name };
  const { status } = authorization;
  const shown = typeof status === "string" ? status : "not valid";
  return { code: "unauthorized", detail: `the authorization is ${shown}`, name };
}

function errorOf({ value }: AcmeResource): AcmeError {
  const found = problemOf(value["error"]);
  if (found === undefined || found.code === "")
    return new AcmeError("serverInternal", "the order is invalid, and the authority does not say why");
  const subproblems = found.name === undefined ? [] : [found];
  return new AcmeError(found.code, found.detail, { subproblems });
}

const identifierOf = (name: string) => ({
  type: isIP(name) === 0 ? "dns" : "ip",
  value: canonical(name),
});

/** RFC 8738, 3: an IPv6 address as RFC 5952 writes it. */
const canonical = (name: string): string =>
  isIP(name) === 6 ? new URL(`http://[${name}]`).hostname.slice(1, -1) : name;

/** No authority certifies an address with a zone. */
const textOf = (value: unknown): string =>
  typeof value === "string" && !value.includes("%") ? canonical(value) : "";

function sameIdentifiers(value: unknown, names: readonly string[]): boolean {
  const found = Array.isArray(value)
    ? value.map((one: { value?: unknown } | null) => textOf(one?.value))
    : [];
  return found.sort().join(" ") === names.map(canonical).sort().join(" ");
}
