/** What a difference between two configs is called. An id is never renamed, or given another meaning. */

/** `error`: something opened. `warning`: something may have. `note`: nothing did; it is said for the reader. */
export type FindingLevel = "error" | "warning" | "note";

/** Every kind of difference, with its level and what it means. */
export const FINDINGS = {
  "listener.opened": ["error", "connections are accepted where none were"],
  "listener.closed": ["note", "connections are no longer accepted there"],
  "listener.unencrypted": ["error", "clients speak http where they spoke https"],
  "listener.encrypted": ["note", "clients speak https where they spoke http"],
  "listener.http2": ["warning", "clients may use HTTP/2, which they could not"],
  "tls.policy-weaker": ["warning", "TLS allows what it did not: a lower version, further ciphers or groups"],
  "tls.policy-changed": ["note", "TLS is negotiated otherwise; nothing is allowed that was not"],
  "health.opened": ["error", "probes are answered where they were not"],
  "metrics.opened": ["error", "metrics are answered where they were not, or for further addresses"],
  "status.opened": ["error", "the status page shows itself to further addresses, or more of clients"],
  "way.opened": ["error", "what reached nothing behind the proxy leads to an application or to files"],
  "way.elsewhere": ["error", "requests reach another application, another path of it, or other files"],
  "way.answered": [
    "note",
    "requests get another redirect, fixed response or status page, and reach nothing behind it",
  ],
  "way.closed": ["note", "what led somewhere is answered with 404"],
  "way.writable": ["error", "requests can change what they could not"],
  "way.websocket": ["warning", "WebSockets pass, which did not"],
  "files.symlinks": ["warning", "symbolic links are followed that were not"],
  "upstream.unencrypted": [
    "error",
    "requests go to an upstream on another host without TLS, which they did not",
  ],
  "upstream.unverified": ["error", "an upstream no longer has to prove who it is"],
  "upstream.trust": ["warning", "an upstream is trusted by other roots, or for another name"],
  "trust.proxies": ["error", "further addresses are believed when they say who the client is"],
  "trust.client-field": ["warning", "the client is taken from another request field"],
  "trust.proxy-protocol": [
    "error",
    "further addresses are believed when their PROXY header says who the client is",
  ],
  "trust.request-fields": [
    "error",
    "request fields reach the application that did not, or as the client sent them",
  ],
  "maintenance.allowed": ["warning", "further addresses are served during maintenance"],
  "limit.raised": ["warning", "clients may use more than they could"],
  "field.removed": ["error", "a field of the response that protects browsers is no longer sent"],
  "field.changed": [
    "warning",
    "a field of the response that protects browsers has a value that may allow more",
  ],
  "field.cross-origin": ["error", "pages of other sites may read responses that they could not"],
  "version.shown": ["warning", "responses name the version of portico"],
} as const satisfies Record<string, readonly [FindingLevel, string]>;

export type FindingId = keyof typeof FINDINGS;

/** One difference between two configs, by what it means for clients. */
export interface Finding {
  readonly id: FindingId;
  readonly level: FindingLevel;
  /** JSON path in the document, such as `virtualServers[0].routes[1]`. */
  readonly place: string;
  /** The document that has the place: the old one for what is gone. */
  readonly document: "new" | "old";
  readonly message: string;
  readonly old?: string;
  readonly new?: string;
  /** Requests that it concerns; absent where it concerns all. */
  readonly ways?: readonly FoundWay[];
}

/** Requests that a finding concerns. */
export interface FoundWay {
  readonly scheme: "http" | "https";
  /** Address and port: `0.0.0.0:443`. */
  readonly at: string;
  readonly names: readonly string[];
  /** `*` stands for any text, `[^/]*` for text without `/`; a longer path that the finding does not name may have a route of its own. */
  readonly paths: readonly string[];
}

/** Whether something became reachable, open or writable, or may have. */
export const opens = ({ level }: Pick<Finding, "level">): boolean => level !== "note";

export interface Change {
  readonly id: FindingId;
  readonly place: string;
  readonly document?: "old";
  readonly level?: FindingLevel;
  readonly old?: string | undefined;
  readonly new?: string | undefined;
}

/** Where a class of requests comes in. */
export interface Door {
  readonly scheme: "http" | "https";
  readonly at: string;
  readonly name: string;
  readonly path: string;
}

/** Collects changes: one that many requests meet is one finding. */
export class Collected {
  private readonly byKey = new Map<string, { readonly change: Change; readonly doors: Door[] }>();

  add(change: Change, door?: Door): void {
    const key = JSON.stringify(change);
    let entry = this.byKey.get(key);
    if (entry === undefined) this.byKey.set(key, (entry = { change, doors: [] }));
    if (door !== undefined) entry.doors.push(door);
  }

  /** The gravest first, then as they were found. */
  findings(): readonly Finding[] {
    const all = [...this.byKey.values()].map(({ change, doors }): Finding => {
      const [level, message] = FINDINGS[change.id];
      return {
        id: change.id,
        level: change.level ?? level,
        place: change.place,
        document: change.document ?? "new",
        message,
        ...(change.old === undefined ? {} : { old: change.old }),
        ...(change.new === undefined ? {} : { new: change.new }),
        ...(doors.length === 0 ? {} : { ways: waysOf(doors) }),
      };
    });
    const order: readonly FindingLevel[] = ["error", "warning", "note"];
    return all.sort((a, b) => order.indexOf(a.level) - order.indexOf(b.level));
  }
}

/** Doors with the same paths are one way with several names. */
function waysOf(doors: readonly Door[]): FoundWay[] {
  const paths = new Map<string, { readonly door: Door; readonly paths: string[] }>();
  for (const door of doors) {
    const key = JSON.stringify([door.scheme, door.at, door.name]);
    const entry = paths.get(key) ?? { door, paths: [] };
    paths.set(key, entry);
    if (!entry.paths.includes(door.path)) entry.paths.push(door.path);
  }
  const ways = new Map<string, { readonly way: FoundWay; readonly names: string[] }>();
  for (const { door, paths: own } of paths.values()) {
    const shown = merged(own);
    const key = JSON.stringify([door.scheme, door.at, shown]);
    const names = ways.get(key)?.names ?? [];
    names.push(door.name);
    ways.set(key, { way: { scheme: door.scheme, at: door.at, names, paths: shown }, names });
  }
  return [...ways.values()].map(({ way }) => way);
}

/** `/a`, `/a/*` and `/a[^/]*` together are `/a*`. */
function merged(paths: readonly string[]): readonly string[] {
  const all = new Set(paths);
  return paths.flatMap((path) => {
    const base = path.replace(/(?:\/\*|\[\^\/\]\*|\*)$/, "");
    const whole = [base, `${base}/*`, `${base}[^/]*`].every((one) => all.has(one));
    if (whole) return path === base ? [`${base}*`] : [];
    // Below a path that ends in a slash there is nothing but what begins with it.
    return path !== base && path === `${base}*` && all.has(base) ? [path] : all.has(`${path}*`) ? [] : [path];
  });
}
