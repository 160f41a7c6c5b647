import { MINUTE_MS, SECOND_MS } from "../../model/text/duration.js";
import { challengeName, type DnsApiConfig } from "../../model/serving.js";
import { apiTokenIn } from "../load/dnsFiles.js";
import { Queue } from "../queue.js";
import { parseJson, retryAt } from "./acmeClient.js";
import { AcmeError } from "./acmeError.js";
import { type Clock } from "./clock.js";
import { type Call, DNS_APIS, type DnsApiDescription } from "./dnsApis.js";
import type { TxtChange, TxtRecord } from "./dnsMessage.js";
import type { DnsProvider, Proof } from "./dnsProvider.js";
import { requiredFile } from "./stateFiles.js";
import { Transport } from "./transport.js";

/** What the writes of all orders have in common. */
export class DnsApiWrites {
  /** A provider may replace all values of a name by those that were read before. */
  readonly queue = new Queue();
  /** The values that were written last, where a domain has one. */
  readonly last = new Map<string, string>();

  constructor(readonly clock: Clock) {}
}

type Values = Readonly<Record<string, unknown>>;

interface Zone {
  readonly zone: string;
  readonly zoneId?: unknown;
  readonly ttl?: unknown;
}

/** Writes records by the API of a provider. */
export class DnsApi implements DnsProvider {
  private readonly api: DnsApiDescription;

  constructor(
    private readonly config: DnsApiConfig,
    private readonly writes: DnsApiWrites,
  ) {
    this.api = DNS_APIS[config.type];
  }

  get nameServers() {
    return this.config.nameServers;
  }

  get publishMs(): number {
    return this.config.publishMs;
  }

  get hasOneValue(): boolean {
    return this.api.records === undefined;
  }

  records(proofs: readonly Proof[]): Promise<TxtRecord[]> {
    const { alias } = this.config;
    return Promise.resolve(proofs.map(({ name, value }) => ({ name: alias ?? challengeName(name), value })));
  }

  /** All records are removed that can be, whatever became of the others. */
  write(change: TxtChange, records: readonly TxtRecord[], signal: AbortSignal): Promise<void> {
    return this.writes.queue.do(async () => {
      const session = await this.session(signal);
      const failures: unknown[] = [];
      for (const record of records)
        await session.write(change, record).catch((error: unknown) => {
          if (change === "present" || signal.aborted) throw error;
          failures.push(error);
        });
      if (failures.length > 0) throw failures[0];
    });
  }

  private async session(signal: AbortSignal): Promise<Session> {
    const { tokenFile, roots: file, url = this.api.url } = this.config;
    const token = apiTokenIn(await requiredFile(tokenFile));
    if (token === undefined) throw new AcmeError("file", `${tokenFile} is not an API token on one line`);
    const roots = file === undefined ? undefined : await requiredFile(file);
    return new Session(this.api, url.replace(/\/$/, ""), token, roots, this.writes, signal);
  }
}

/** The requests of one write. */
class Session {
  private readonly transport: Transport;
  private readonly zones = new Map<string, Zone>();

  constructor(
    private readonly api: DnsApiDescription,
    private readonly url: string,
    private readonly token: string,
    roots: string | undefined,
    private readonly writes: DnsApiWrites,
    private readonly signal: AbortSignal,
  ) {
    const authorization = api.authorization && { authorization: filled(api.authorization, { token }) };
    const headers = { "content-type": "application/json", ...authorization };
    this.transport = new Transport({ roots, signal, headers, peer: api.title });
  }

  /** The values are read again before each attempt, so that nothing is written twice. */
  async write(change: TxtChange, record: TxtRecord): Promise<void> {
    for (let left = ATTEMPTS; ; left--) {
      try {
        return await this.change(change, record);
      } catch (error) {
        if (!(error instanceof Busy) || left === 1 || error.pauseMs > MINUTE_MS) throw error;
        await this.writes.clock.wait(error.pauseMs, this.signal);
        this.signal.throwIfAborted();
      }
    }
  }

  private async change(change: TxtChange, { name, value }: TxtRecord): Promise<void> {
    const { present, cleanup, records, ttlSeconds } = this.api;
    const zone = await this.zone(name);
    const sub = name === zone.zone ? "" : name.slice(0, -zone.zone.length - 1);
    const about = { ...zone, name, sub, value, ttl: zone.ttl ?? ttlSeconds };
    if (records === undefined) return this.changeOne(change, about);
    const path = { ...about, sub: sub === "" && !records.path.includes("...") ? "@" : sub };
    const found = await this.send({ method: "GET", path: records.path }, path, NONE);
    const all = found === undefined ? [] : listAt(found, records.list);
    const kept = all.map((one) => ({
      text: String(records.value === undefined ? one : at(one, records.value)),
      id: records.id && at(one, records.id),
    }));
    const quoted = `"${value}"`;
    const own = kept.filter(({ text }) => text === value || text === quoted);
    if (own.length > 0 === (change === "present")) return;
    const others = kept.filter((one) => !own.includes(one)).map(({ text }) => text);
    const ttl = found !== undefined && records.ttl !== undefined ? at(found, records.ttl) : about.ttl;
    const values = change === "present" ? [...others, quoted] : others;
    const changed = { ...path, ttl, values };
    if (change === "present") return this.finish(await this.send(present, changed));
    for (const { id } of own) await this.finish(await this.send(cleanup, { ...changed, id }, NONE));
  }

  /** Another order may have put its value in the place of this one. */
  private async changeOne(
    change: TxtChange,
    about: Values & Zone & { readonly value: string },
  ): Promise<void> {
    const { last } = this.writes;
    const { zone, value } = about;
    if (change === "cleanup" && (last.get(zone) ?? value) !== value) return;
    await this.send(this.api[change], about);
    if (change === "present") last.set(zone, value);
    else last.delete(zone);
  }

  private async zone(name: string): Promise<Zone> {
    const known = this.zones.get(name);
    if (known !== undefined) return known;
    const zone = await this.foundZone(name);
    this.zones.set(name, zone);
    return zone;
  }

  private async foundZone(name: string): Promise<Zone> {
    const { zone: how, title } = this.api;
    if ("below" in how) {
      const zone = name.endsWith(`.${how.below}`)
        ? name.split(".").at(-how.below.split(".").length - 1)!
        : "";
      if (zone !== "") return { zone };
      throw new AcmeError("dnsUpdate", `${title} has no record ${name}: it is not below ${how.below}`);
    }
    const labels = name.split(".");
    const suffixes = labels.slice(0, -1).map((_, i) => labels.slice(i).join("."));
    for (const suffix of how.path.includes("{suffix}") ? suffixes : [name]) {
      const found = await this.send({ method: "GET", path: how.path }, { name, suffix });
      const zone = at(found, how.name);
      if (typeof zone !== "string" || !(name === zone || name.endsWith(`.${zone}`))) continue;
      return { zone, zoneId: how.id && at(found, how.id), ttl: how.ttl && at(found, how.ttl) };
    }
    throw new AcmeError("dnsUpdate", `${title} shows this token no zone that has ${name}`);
  }

  /** Waits for a write that goes on after its response. */
  private async finish(response: unknown): Promise<void> {
    const { action, title } = this.api;
    if (action === undefined || response === undefined) return;
    const { clock } = this.writes;
    const end = clock.elapsed() + MINUTE_MS;
    for (let seen: unknown = response; ;) {
      const status = at(seen, action.status);
      if (status === "success") return;
      if (status !== "running") throw this.failure(`did not write the record${this.wordsIn(seen)}`);
      if (clock.elapsed() > end)
        throw new AcmeError("dnsUpdate", `${title} has not written the record after a minute`);
      await clock.wait(SECOND_MS, this.signal);
      seen = await this.send({ method: "GET", path: action.path }, { id: at(response, action.id) });
    }
  }

  /** @param none a status that says that there is nothing: the response is undefined then */
  private async send({ method, path, body }: Call, values: Values, none?: number): Promise<unknown> {
    const target = filled(path, { ...values, token: this.token }, encodeURIComponent);
    const content = body === undefined ? undefined : JSON.stringify(filledIn(body, values));
    const response = await this.transport
      .send(method, `${this.url}${target}`, content, method !== "POST")
      .catch((error: unknown) => {
        if (!(error instanceof AcmeError)) throw error;
        // The error's message may have the URL, and the URL may have the token.
        const detail = error.code === "badResponse" ? "the response is longer than a megabyte" : error.detail;
        throw this.failure(`does not respond: ${detail}`);
      });
    const { status, body: text } = response;
    const { says } = this.api;
    if (status === none) return undefined;
    if (status >= 200 && status < 300 && (says?.done?.test(text) ?? true)) return parseJson(text);
    const words = this.wordsIn(parseJson(text));
    if (status === 401 || status === 403 || says?.badToken.test(text) === true)
      throw this.failure(`rejects the token, or the token may not do this (${status})${words}`);
    if (status !== 429 && status < 500) throw this.failure(`responded with ${status}${words}`);
    const { clock } = this.writes;
    const again = retryAt(response, clock);
    const limited =
      status === 429 ? `takes no more requests for now (429)${words}` : `failed (${status})${words}`;
    throw new Busy(this.failure(limited).detail, again, Math.max(PAUSE_MS, (again ?? 0) - clock.now()));
  }

  private wordsIn(response: unknown): string {
    const words = this.api.words.map((place) => at(response, place)).find((one) => typeof one === "string");
    return words === undefined ? "" : `: ${(words as string).slice(0, WORDS_MAX)}`;
  }

  /** A server may repeat what it got. */
  private failure(what: string): AcmeError {
    const shown = what.replaceAll(this.token, "…").replaceAll(encodeURIComponent(this.token), "…");
    return new AcmeError("dnsUpdate", `${this.api.title} (${new URL(this.url).host}) ${shown}`);
  }
}

/** The same request may succeed soon. */
class Busy extends AcmeError {
  constructor(
    detail: string,
    retry: number | undefined,
    readonly pauseMs: number,
  ) {
    super("dnsUpdate", detail, { retryAt: retry });
  }
}

const NONE = 404;
const ATTEMPTS = 3;
const PAUSE_MS = 2 * SECOND_MS;
const WORDS_MAX = 120;

const at = (value: unknown, place: string): unknown =>
  place
    .split(".")
    .reduce<unknown>(
      (one, key) => (Object.hasOwn(Object(one), key) ? (one as Values)[key] : undefined),
      value,
    );

function listAt(value: unknown, place: string): readonly unknown[] {
  const list = at(value, place);
  return Array.isArray(list) ? list : [];
}

const filled = (text: string, values: Values, encode: (value: string) => string = String): string =>
  text.replace(/\{(\w+)\}/g, (_, name: string) => encode(String(values[name])));

/** A value that is a whole text keeps its type. */
function filledIn(template: unknown, values: Values): unknown {
  if (typeof template === "string") {
    const whole = /^\{(\w+)\}$/.exec(template)?.[1];
    return whole === undefined ? filled(template, values) : values[whole];
  }
  if (Array.isArray(template)) return template.map((one) => filledIn(one, values));
  if (typeof template !== "object" || template === null) return template;
  return Object.fromEntries(Object.entries(template).map(([name, one]) => [name, filledIn(one, values)]));
}
