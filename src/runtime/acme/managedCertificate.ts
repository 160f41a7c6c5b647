import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../model/text/duration.js";
import { join } from "node:path";
import { printableName } from "../../model/text/printable.js";
import { type AcmeError, acmeError } from "./acmeError.js";
import type { AcmeAuthority } from "./authority.js";
import {
  certificateMark,
  contentsOf,
  folderOf,
  type StoredCertificate,
  readCertificate,
} from "./certificateFile.js";
import type { OpenChallenges } from "./challenges.js";
import { pageOf } from "./acmeClient.js";
import { type Clock } from "./clock.js";
import type {
  AcmeFailure,
  AcmeHost,
  CertificateStatus,
  OrderRefusal,
  OrderedCertificate,
} from "./acmeHost.js";
import { Order } from "./order.js";
import {
  afterClockChange,
  afterRenewalFailure,
  asksToRenew,
  type History,
  historyIn,
  mayAskEarly,
  nextAttempt,
  nextRenewalQuestion,
  NO_HISTORY,
  renewalTime,
  retryTime,
  type Validity,
} from "./schedule.js";
import { readJson, removeDrafts, writeJson } from "./stateFiles.js";
import { failureOf, withWayAroundPause } from "./refusals.js";
import { renewalId } from "./x509.js";

export interface ManagedCertificateOptions {
  readonly wanted: OrderedCertificate;
  readonly authority: AcmeAuthority;
  /** The state directory. */
  readonly directory: string;
  readonly challenges: OpenChallenges;
  readonly host: AcmeHost;
  readonly clock: Clock;
  /** Whether the config of the certificate has changed, so that an earlier failure may not happen again. */
  readonly changed: boolean;
}

/**
 * Manages one certificate: gets it, renews it in time, and tries again after a failure.
 *
 * If an address decides which of several hosts sends requests, it checks every few seconds whether this host has the
 * address. Without the address, it sends no requests, and uses a certificate that another process puts into the folder.
 * With the address, it continues from the files there, which may come from the other host.
 */
export class ManagedCertificate {
  private readonly folder: string;
  private readonly order: Order;
  private readonly stopping = new AbortController();
  private kept: StoredCertificate | undefined;
  /** Whether this host asks; undefined before it was looked at. */
  private asking: boolean | undefined;
  /** The certificate's file as it was read last. */
  private mark: string | undefined;
  /** The certificate from another host that listeners were given last. */
  private taken: string | undefined;
  private history: History = NO_HISTORY;
  private ordering = false;
  /** An order is on disk and continues at once. */
  private resuming = false;
  private asked: OrderCallback[] = [];
  private awake = new AbortController();
  private running: Promise<void> = Promise.resolve();

  constructor(private readonly options: ManagedCertificateOptions) {
    const { wanted, directory } = options;
    this.folder = folderOf(directory, wanted.id);
    const unfit: AcmeHost["unfit"] = (issued) => options.host.unfit(issued);
    this.order = new Order({ ...options, unfit, folder: this.folder, signal: this.stopping.signal });
  }

  get wanted(): OrderedCertificate {
    return this.options.wanted;
  }

  /** @param after resolves when the previous order for this certificate has stopped */
  start(after: Promise<void>): void {
    this.running = after.then(() => this.run());
  }

  /** Leaves everything as it is, for its successor; resolves with the renewal requests that have no response yet. */
  async stop(): Promise<OrderCallback[]> {
    this.stopping.abort();
    this.awake.abort();
    await this.running;
    return this.asked.splice(0);
  }

  /** Tries at once, whatever the schedule says; resolves with the failure, if there is one. */
  renewNow(): Promise<OrderRefusal | undefined> {
    return new Promise((resolve) => {
      this.asked.push(resolve);
      this.awake.abort();
    });
  }

  status(): CertificateStatus {
    const { wanted, clock } = this.options;
    const { lastFailure } = this.history;
    const { id, names, authority } = wanted;
    const has = this.kept === undefined ? "none" : "valid";
    const shown = {
      id,
      names,
      authority: authority.name,
      ...(this.kept && this.life(this.kept)),
    };
    const waitsFor = this.asking === false ? authority.holderAddress : undefined;
    if (waitsFor !== undefined) return { ...shown, state: has, waitsFor };
    return {
      ...shown,
      ...(this.ordering ? {} : { nextAttempt: Math.max(this.due(), clock.now()) }),
      state: this.ordering ? "ordering" : lastFailure === undefined ? has : "waiting",
      lastError: lastFailure,
    };
  }

  private life(kept: StoredCertificate): Pick<CertificateStatus, "issuer" | "notAfter" | "renewAt"> {
    const validity = validityOf(kept);
    const renewAt = renewalTime(validity, this.history);
    return { issuer: issuerOf(kept), notAfter: validity.notAfter, renewAt };
  }

  private async run(): Promise<void> {
    const { clock } = this.options;
    const { signal } = this.stopping;
    while (!signal.aborted) {
      try {
        await this.turn();
      } catch (error) {
        // A bug, whatever its cause, must affect neither other certificates nor the process.
        this.options.host.log("error", `certificates: ${(error as Error).stack}`);
        await clock.wait(SLEEP_MOST_MS, signal);
      }
    }
  }

  private async turn(): Promise<void> {
    const { authority, clock } = this.options;
    const asking = await authority.mayBeAsked();
    if (asking !== this.asking || (await this.isReplaced())) await this.load(asking);
    if (!asking) return this.standBy(authority.holderAddress!);
    await this.change(afterClockChange(this.history, clock.now()));
    const now = clock.now();
    const questionAt = this.questionAt();
    if (this.isDue(now)) await this.takePlace();
    else if (questionAt <= now) await this.askForRenewalTime();
    else await this.sleep(Math.min(this.due(), questionAt) - now);
  }

  private async standBy(address: string): Promise<void> {
    const message = `this host does not have the address ${address}; only the host with this address requests certificates`;
    this.respond({ message, fix: `Run the command on the host that has ${address}.` });
    await this.sleep(LOOK_MS);
  }

  private async load(asking: boolean): Promise<void> {
    const before = this.asking;
    const isFirst = before === undefined;
    this.asking = asking;
    try {
      this.mark = await certificateMark(this.folder);
      this.kept = await readCertificate(this.folder);
      if (this.isShared) await this.take(isFirst);
      const read = await readJson<History>(join(this.folder, "history.json"));
      this.history = historyIn(read) ?? this.history;
      if (this.options.changed && isFirst) this.history = { ...this.history, failures: 0 };
      if (asking) await this.resume();
      else if (before !== false) this.sayThatItWaits();
    } catch (error) {
      if (asking) await this.failed(error);
      else this.options.host.log("error", `certificates: ${acmeError(error).detail}`);
    }
  }

  private async resume(): Promise<void> {
    await removeDrafts(this.folder);
    // Another host has already got the certificate of this order.
    if (this.isShared && this.kept !== undefined && this.due() > this.options.clock.now())
      await this.order.drop();
    this.resuming = await this.order.resume();
  }

  /** Whether several hosts have this certificate, and one of them asks for it. */
  private get isShared(): boolean {
    return this.wanted.authority.holderAddress !== undefined;
  }

  private async isReplaced(): Promise<boolean> {
    return this.isShared && (await certificateMark(this.folder)) !== this.mark;
  }

  /** Gives a certificate to the listeners that did not come from this host's own order. */
  private async take(isFirst: boolean): Promise<void> {
    const { wanted, host } = this.options;
    const { kept } = this;
    if (kept === undefined || kept.cert === this.taken) return;
    const why = await this.order.fault(kept);
    const certificate = `certificate for ${wanted.names.join(", ")}`;
    if (why !== undefined) {
      this.kept = undefined;
      return host.log("warn", `${certificate}: the files in the state directory are not used: ${why}`);
    }
    this.taken = kept.cert;
    host.install(contentsOf(wanted, kept));
    const until = new Date(validityOf(kept).notAfter).toISOString();
    if (!isFirst)
      host.log(
        "info",
        `${certificate}: taken from another host, issued by ${issuerOf(kept)}, valid until ${until}`,
      );
  }

  private sayThatItWaits(): void {
    const { names, authority } = this.wanted;
    const waiting = `waiting for the address ${authority.holderAddress}`;
    this.options.host.log(
      "info",
      `certificate for ${names.join(", ")}: ${waiting}; no request to ${authority.name}`,
    );
  }

  private due(): number {
    const certificate = this.kept === undefined ? undefined : validityOf(this.kept);
    return nextAttempt(this.options.wanted.id, certificate, this.history);
  }

  /** An interrupted order continues at once, unless a failure ended the attempt. */
  private isDue(now: number): boolean {
    const cutOff = this.resuming && this.history.failures === 0 && !this.isEarly(now);
    return this.asked.length > 0 || cutOff || this.due() <= now;
  }

  /** An authority that set a time is not asked before it, even if the config changes; only an administrator may. */
  private isEarly(now: number): boolean {
    return (this.history.retryAt ?? 0) > now;
  }

  /** Not long at once: a clock that was set forward, or a machine that slept, is noticed. */
  private async sleep(ms: number): Promise<void> {
    this.awake = new AbortController();
    // A stop before this line is not slept through.
    if (this.stopping.signal.aborted) return;
    const most = this.isShared ? LOOK_MS : SLEEP_MOST_MS;
    await this.options.clock.wait(Math.min(ms, most), this.awake.signal);
  }

  private async takePlace(): Promise<void> {
    const { authority, clock } = this.options;
    const leave = await authority.ordering.enter();
    try {
      if (this.stopping.signal.aborted || !(await authority.mayBeAsked())) return;
      const { lastFailure } = this.history;
      const now = clock.now();
      const isRefused = this.isEarly(now) && !mayAskEarly(this.history, now);
      if (isRefused && lastFailure !== undefined) this.respond(lastFailure);
      else await this.attempt();
    } finally {
      leave();
    }
  }

  private async attempt(): Promise<void> {
    const { wanted, host, clock } = this.options;
    const names = wanted.names.join(", ");
    const what = this.resuming ? "the order continues" : this.kept === undefined ? "ordered" : "renewed";
    host.log("info", `certificate for ${names}: ${what}, from ${wanted.authority.name}`);
    try {
      this.kept = await this.ordered();
      this.taken = this.kept.cert;
      await this.change({ failures: 0, issuedAt: clock.now() });
      host.install(contentsOf(wanted, this.kept));
      const until = new Date(validityOf(this.kept).notAfter).toISOString();
      host.log("info", `certificate for ${names}: issued by ${issuerOf(this.kept)}, valid until ${until}`);
      this.respond(undefined);
    } catch (error) {
      if (!this.stopping.signal.aborted) await this.failed(error);
    }
  }

  private async ordered(): Promise<StoredCertificate> {
    const { kept, history } = this;
    this.ordering = true;
    try {
      const asked = kept !== undefined && asksToRenew(validityOf(kept), history, this.options.clock.now());
      return await this.order.complete({ id: kept && renewalId(kept.leaf), asked });
    } finally {
      this.ordering = false;
      this.resuming = false;
    }
  }

  private async failed(error: unknown): Promise<void> {
    const { wanted, host, clock } = this.options;
    const known = acmeError(error);
    const failure = failureOf(known, wanted, clock.now());
    // A renewal was requested beyond the authority's limits, and the certificate is not due. The requester gets the
    // reason; it is not recorded as a failure.
    if (known.more.notAsked === true && this.kept !== undefined && this.due() > clock.now())
      return this.notRenewed(failure);
    const { retryAt, ...before } = this.history;
    const failures = before.failures + 1;
    const notAfter = this.kept && validityOf(this.kept).notAfter;
    const later = retryTime(clock.now(), known.more.retryAt, failure.code, notAfter);
    const retry = later === undefined ? {} : { retryAt: later };
    const isLong = (later ?? 0) - clock.now() > HOUR_MS && known.more.notAsked !== true;
    const lastFailure = isLong ? withWayAroundPause(failure, wanted) : failure;
    await this.change({ ...before, failures, lastFailure, ...retry });
    const next = new Date(this.due()).toISOString();
    const { code, message, fix } = lastFailure;
    // A failure has one line, with its fix, so that an operator can act on the log alone.
    host.log("error", `certificate not issued (${code}): ${message}; next attempt at ${next}; fix: ${fix}`);
    this.respond(lastFailure);
  }

  private notRenewed(failure: AcmeFailure): void {
    this.options.host.log("info", `certificate not renewed: ${failure.message}`);
    this.respond(failure);
  }

  /** When to ask the authority for renewal information; never without a certificate. */
  private questionAt(): number {
    if (this.kept === undefined) return Infinity;
    const { renewal } = this.history;
    return renewal?.certificate === validityOf(this.kept).fingerprint ? renewal.askAgainAt : 0;
  }

  /** RFC 9773, 4. */
  private async askForRenewalTime(): Promise<void> {
    const { authority, clock, wanted, host } = this.options;
    const certificate = validityOf(this.kept!);
    const before =
      this.history.renewal?.certificate === certificate.fingerprint ? this.history.renewal : undefined;
    try {
      const { renewalInfo } = await authority.directory();
      const id = renewalId(this.kept!.leaf);
      const known = renewalInfo !== undefined && id !== undefined;
      const response = known ? await authority.get(`${renewalInfo}/${id}`) : undefined;
      const window = response === undefined ? undefined : windowIn(response.value["suggestedWindow"]);
      if (known && window === undefined) throw new Error("no window");
      const askAgainAt = nextRenewalQuestion(clock.now(), response?.retryAt);
      const found = { certificate: certificate.fingerprint, askAgainAt, failures: 0 };
      await this.change({ ...this.history, renewal: window === undefined ? found : { ...found, window } });
      if (!asksToRenew(certificate, this.history, clock.now())) return;
      const page = pageOf(response?.value["explanationURL"]);
      const why = page === undefined ? "" : ` (${page})`;
      host.log(
        "info",
        `certificate for ${wanted.names.join(", ")}: the authority asks to renew it now${why}`,
      );
    } catch {
      // If there is no response, the last response counts, or else the certificate's lifetime (RFC 9773, 4.3).
      const failures = (before?.failures ?? 0) + 1;
      const askAgainAt = afterRenewalFailure(clock.now(), failures);
      const renewal = { ...before, certificate: certificate.fingerprint, askAgainAt, failures };
      if (!this.stopping.signal.aborted) await this.change({ ...this.history, renewal });
    }
  }

  /** If the file cannot be written, the history lasts until the end of this process. */
  private async change(history: History): Promise<void> {
    if (history === this.history) return;
    this.history = history;
    try {
      await writeJson(join(this.folder, "history.json"), history);
    } catch (error) {
      this.options.host.log("error", `certificates: ${(error as AcmeError).detail}`);
    }
  }

  private respond(refusal: OrderRefusal | undefined): void {
    for (const resolve of this.asked.splice(0)) resolve(refusal);
  }
}

/** Responds to a request for a certificate; `undefined` says that it was issued. */
export type OrderCallback = (response: OrderRefusal | undefined | Promise<OrderRefusal | undefined>) => void;

const SLEEP_MOST_MS = 10 * MINUTE_MS;
/** How long an address that has moved goes unnoticed, and a certificate that was copied. */
const LOOK_MS = 5 * SECOND_MS;

function validityOf({ leaf }: StoredCertificate): Validity {
  const { fingerprint256: fingerprint, validFrom, validTo } = leaf;
  return { fingerprint, notBefore: Date.parse(validFrom), notAfter: Date.parse(validTo) };
}

/** `Let's Encrypt R11` */
function issuerOf({ leaf }: StoredCertificate): string {
  const lines = leaf.issuer.split("\n");
  const part = (name: string): string | undefined =>
    lines.find((line) => line.startsWith(`${name}=`))?.slice(name.length + 1);
  return printableName([part("O"), part("CN")].filter((text) => text !== undefined).join(" "));
}

function windowIn(value: unknown): { start: number; end: number } | undefined {
  const { start, end } = Object(value) as { start?: unknown; end?: unknown };
  const window = { start: Date.parse(String(start)), end: Date.parse(String(end)) };
  return window.start < window.end ? window : undefined;
}
