import {
  CATCH_ALL,
  isWildcardName,
  type ListenerConfig,
  type ProxyConfig,
  type Scheme,
} from "../../../model/index.js";
import type { LineRequest } from "../logs/accessLogLine.js";
import {
  changesBetween,
  changesFromLog,
  type ReplayChange,
  summaryOf,
  summaryOfLogged,
  type Summary,
} from "./replayChanges.js";
import { outcomeIn, type ReplayOutcome, Side } from "./replayOutcome.js";
import { hiddenQuery, shownText } from "./replayTexts.js";

/** Compares how two configs treat the requests of a log, or one config with the log itself. */

export interface ReplayOptions {
  /** The config that requests are compared with; undefined to compare with the log itself. */
  readonly before: ProxyConfig | undefined;
  readonly after: ProxyConfig;
  /** The scheme and host of requests whose lines do not say it, as those of `combined`. */
  readonly origin: Origin;
  /** Whether queries, and parts of paths that look like secrets, are shown. */
  readonly secrets: boolean;
  /** Names of the only virtual servers whose requests count, in either config; undefined for all. */
  readonly servers?: ReadonlySet<string> | undefined;
}

export interface Origin {
  readonly scheme: Scheme;
  /** Host as clients write it; empty if the server has no name. */
  readonly host: string;
}

/** Requests that change in the same way. */
export interface ChangeGroup {
  count: number;
  readonly changes: readonly ReplayChange[];
  readonly before: Summary;
  readonly after: Summary;
  readonly examples: Example[];
}

/** An example of a change; every text is printable ASCII. */
export interface Example {
  /** File and number of its line: `access.log:12`. */
  readonly line: string;
  /** `GET https://files.example.org/sync/`. */
  readonly request: string;
  /** Path upstream, file or Location, before and after; absent if there is none, or it is unknown. */
  readonly before?: string;
  readonly after?: string;
}

const EXAMPLES_MAX = 3;
/** How many different requests are kept: a log of a month repeats itself, but a scanner does not. */
const KNOWN_MAX = 20_000;
/** A longer request is unlikely to repeat, and many of them would fill the memory. */
const KNOWN_CHARACTERS_MAX = 2_048;

interface ReplayedRequest {
  readonly before: ReplayOutcome | undefined;
  readonly after: ReplayOutcome;
  readonly group: ChangeGroup | undefined;
  /** Whether the length of a body, which the log does not say, would make a difference. */
  readonly limitDiffers: boolean;
}

export class Replay {
  requests = 0;
  changed = 0;
  /** Requests with bodies of a length that is not known, for routes that now have another limit. */
  unknownBodies = 0;
  private readonly before: Side | undefined;
  private readonly after: Side;
  /** Whether any route limits bodies: only then is the length of a body part of the key. */
  private readonly limits: boolean;
  /** The same of clients. */
  private readonly judgesClients: boolean;
  private readonly byText = new Map<string, ChangeGroup>();
  private known = new Map<string, ReplayedRequest>();

  constructor(private readonly options: ReplayOptions) {
    this.before = options.before === undefined ? undefined : new Side(options.before);
    this.after = new Side(options.after);
    this.judgesClients = this.after.judgesClients || this.before?.judgesClients === true;
    this.limits = this.after.limitsBodies || this.before?.limitsBodies === true;
  }

  /** @param where file and line that it is from, in words; asked only for examples */
  add(request: LineRequest, where: () => string): void {
    const known = this.lookUp(request);
    if (!this.counts(known, request)) return;
    this.requests++;
    if (known.limitDiffers && request.bodyBytes === -1) this.unknownBodies++;
    const group = this.before === undefined ? this.groupFromLog(request, known.after) : known.group;
    if (group === undefined) return;
    this.changed++;
    group.count++;
    if (group.examples.length < EXAMPLES_MAX) group.examples.push(this.example(request, known, where()));
  }

  private counts({ before, after }: ReplayedRequest, request: LineRequest): boolean {
    const { servers } = this.options;
    const served = [before?.virtualServer, after.virtualServer, request.server];
    return servers === undefined || served.some((name) => name !== undefined && servers.has(name));
  }

  /** The most frequent first. */
  get groups(): readonly ChangeGroup[] {
    return [...this.byText.values()].sort((a, b) => b.count - a.count);
  }

  private lookUp(request: LineRequest): ReplayedRequest {
    const { method, bodyBytes, listener = "", userAgent } = request;
    const client = this.judgesClients ? request.client : undefined;
    const { scheme = this.options.origin.scheme, host = this.options.origin.host } = request;
    const target = this.options.secrets ? request.target : hiddenQuery(request.target);
    const length = this.limits ? bodyBytes : "";
    // Before the host, none of these has a space.
    const key = `${method} ${target} ${length} ${scheme} ${listener} ${host}\n${userAgent ?? ""}\n${client ?? ""}`;
    const found = this.known.get(key);
    if (found !== undefined) return found;
    if (this.known.size >= KNOWN_MAX) this.known = new Map();
    const asked = { method, target, bodyBytes, scheme, host, listener: request.listener, userAgent, client };
    const after = outcomeIn(this.after, asked);
    const before = this.before === undefined ? undefined : outcomeIn(this.before, asked);
    const group = before === undefined ? undefined : this.groupOf(before, after);
    const limitDiffers = before !== undefined && bodyLimitDiffers(before, after);
    const made = { before, after, group, limitDiffers };
    if (key.length <= KNOWN_CHARACTERS_MAX) this.known.set(key, made);
    return made;
  }

  private groupOf(before: ReplayOutcome, after: ReplayOutcome): ChangeGroup | undefined {
    const changes = changesBetween(before, after);
    if (changes.length === 0) return undefined;
    // Names of a config have no spaces.
    const key = `${changes.join()} ${keyOf(before)} ${keyOf(after)}`;
    return this.byText.get(key) ?? this.grouped(key, changes, summaryOf(before), summaryOf(after));
  }

  private groupFromLog(request: LineRequest, after: ReplayOutcome): ChangeGroup | undefined {
    const changes = changesFromLog(request, after);
    if (changes.length === 0) return undefined;
    const before = summaryOfLogged(request);
    const key = `${changes.join()} ${keyOf(after)} ${JSON.stringify(before)}`;
    return this.byText.get(key) ?? this.grouped(key, changes, before, summaryOf(after));
  }

  private grouped(
    key: string,
    changes: readonly ReplayChange[],
    before: Summary,
    after: Summary,
  ): ChangeGroup | undefined {
    const group = { count: 0, changes, before, after, examples: [] };
    this.byText.set(key, group);
    return group;
  }

  private example(request: LineRequest, { before, after }: ReplayedRequest, line: string): Example {
    const { scheme = this.options.origin.scheme, host = this.options.origin.host } = request;
    const shown = (text: string): string => shownText(text, this.options.secrets);
    const target = this.options.secrets ? request.target : hiddenQuery(request.target);
    const authority = host === "" ? "-" : host;
    return {
      line: shownText(line, true),
      request: `${request.method} ${shown(target.startsWith("/") ? `${scheme}://${authority}${target}` : target)}`,
      before: before?.to === undefined ? undefined : shown(before.to),
      after: after.to === undefined ? undefined : shown(after.to),
    };
  }
}

/** The same for all outcomes with one {@link Summary}. */
const keyOf = ({ virtualServer, route, action, upstream, status }: ReplayOutcome): string =>
  `${virtualServer} ${route} ${action} ${upstream} ${status}`;

/** If either outcome has no route, no length matters. */
const bodyLimitDiffers = (
  { bodyBytesMax: before }: ReplayOutcome,
  { bodyBytesMax: after }: ReplayOutcome,
): boolean => before !== undefined && after !== undefined && before !== after;

/**
 * Scheme and host for requests whose log lines have none: `https` if the config has a listener for it, and the only
 * application's name.
 *
 * @returns the names to choose from, if there are several applications
 */
export function originOf(
  config: ProxyConfig,
  given: {
    readonly scheme?: Scheme | undefined;
    readonly host?: string | undefined;
    readonly servers?: ReadonlySet<string> | undefined;
  },
): Origin | { readonly names: readonly string[] } {
  const isHttps = ({ protocol }: ListenerConfig): boolean => protocol === "https";
  const scheme = given.scheme ?? (config.listeners.some(isHttps) ? "https" : "http");
  if (given.host !== undefined) return { scheme, host: given.host };
  const listeners = config.listeners.filter(({ protocol }) => protocol === scheme).map(({ name }) => name);
  const names = config.virtualServers
    .filter(
      (server) =>
        server.listeners.some((name) => listeners.includes(name)) &&
        given.servers?.has(server.name) !== false,
    )
    .flatMap(
      ({ serverNames }) => serverNames.find((name) => name !== CATCH_ALL && !isWildcardName(name)) ?? [],
    );
  const [host = "", ...others] = new Set(names);
  return others.length === 0 ? { scheme, host } : { names: [host, ...others] };
}
