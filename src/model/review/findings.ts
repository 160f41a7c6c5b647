/** The ids of differences between two configs. An id is never renamed, or given another meaning. */

/** `error`: something opened. `warning`: something may have opened. `note`: nothing opened; for information. */
export type FindingLevel = "error" | "warning" | "note";

/** Every kind of difference, with its level and its meaning. */
export const FINDINGS = {
  "listener.opened": ["error", "a listener accepts connections at a new address or port"],
  "listener.closed": ["note", "no listener accepts connections at this address and port any more"],
  "listener.unencrypted": ["error", "a listener speaks http where it spoke https before"],
  "listener.encrypted": ["note", "a listener speaks https where it spoke http before"],
  "listener.http2": ["warning", "clients can use HTTP/2, which they could not use before"],
  "tls.policy-weaker": [
    "warning",
    "the TLS policy may be weaker: a lower version, more ciphers or groups, or no hybrid group",
  ],
  "tls.policy-changed": ["note", "the TLS policy differs, and allows nothing that it refused before"],
  "health.opened": ["error", "the health listener accepts probes at a new address or port"],
  "metrics.opened": ["error", "the metrics listener has a new address or port, or accepts more clients"],
  "status.opened": ["error", "more addresses can see the status page, or the page shows more about clients"],
  "way.opened": [
    "error",
    "requests reach an application or files; the proxy itself responded to them before",
  ],
  "way.elsewhere": [
    "error",
    "requests reach another application, another path of the same application, or other files",
  ],
  "access.opened": ["error", "clients may come in that an access policy refused before"],
  "access.closed": ["note", "an access policy refuses clients that might come in before"],
  "access.handed-on": [
    "warning",
    "the application gets other credentials of clients, or the user in other request header fields, than before",
  ],
  "guard.weaker": ["warning", "clients can guess more passwords than before"],
  "guard.stronger": ["note", "clients can guess fewer passwords than before"],
  "way.own-response": [
    "note",
    "the proxy itself responds to requests, with a new redirect, fixed response or status page",
  ],
  "way.closed": ["note", "requests that a route handled match no route, and get 404"],
  "way.writable": ["error", "more requests can change data of the application"],
  "way.upgrade": [
    "warning",
    "clients can open WebSockets, or tunnels of another protocol, to the application, which they could not open before",
  ],
  "files.symlinks": ["warning", "the proxy follows more symbolic links than before"],
  "upstream.unencrypted": [
    "error",
    "the proxy sends requests to another host without TLS, which it did not before",
  ],
  "upstream.unverified": ["error", "the proxy no longer verifies the certificate of an upstream"],
  "upstream.trust": [
    "warning",
    "the proxy verifies the certificate of an upstream with other root certificates, or for another name",
  ],
  "trust.proxies": ["error", "the proxy trusts more addresses to name the client"],
  "trust.client-field": ["warning", "the proxy takes the client's address from another request header field"],
  "trust.proxy-protocol": [
    "error",
    "the proxy trusts more addresses to name the client in a PROXY protocol header",
  ],
  "trust.request-fields": [
    "error",
    "the application gets request header fields that the proxy dropped or replaced before",
  ],
  "maintenance.allowed": ["warning", "the proxy serves more addresses during a maintenance"],
  "limit.raised": ["warning", "a limit for clients is higher than before"],
  "field.removed": [
    "error",
    "the proxy removes, or no longer sets, a response header field that protects browsers",
  ],
  "field.changed": [
    "warning",
    "a response header field that protects browsers has another value, which may allow more",
  ],
  "field.cross-origin": ["error", "pages of other sites may read responses that they could not read before"],
  "version.shown": ["warning", "responses show the version of Portico"],
} as const satisfies Record<string, readonly [FindingLevel, string]>;

export type FindingId = keyof typeof FINDINGS;

/** A difference between two configs, by its effect on clients. */
export interface ReviewFinding {
  readonly id: FindingId;
  readonly level: FindingLevel;
  /** JSON path in the document, such as `virtualServers[0].routes[1]`. */
  readonly place: string;
  /** The document that has the place: the old one for removed parts. */
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
  /**
   * `*` stands for any text, `[^/]*` for text without `/`; a longer path that the finding does not name may have its
   * own route.
   */
  readonly paths: readonly string[];
}

/** Whether something became reachable, open or writable, or may have. */
export const opens = ({ level }: Pick<ReviewFinding, "level">): boolean => level !== "note";

export interface ReviewChange {
  readonly id: FindingId;
  readonly place: string;
  readonly document?: "old";
  readonly level?: FindingLevel;
  readonly old?: string | undefined;
  readonly new?: string | undefined;
}

/** The entrance of a class of requests. */
export interface Door {
  readonly scheme: "http" | "https";
  readonly at: string;
  readonly name: string;
  readonly path: string;
}

/** Collects changes: a change for many requests is one finding. */
export class Collected {
  private readonly byKey = new Map<string, { readonly change: ReviewChange; readonly doors: Door[] }>();

  add(change: ReviewChange, door?: Door): void {
    const key = JSON.stringify(change);
    let entry = this.byKey.get(key);
    if (entry === undefined) this.byKey.set(key, (entry = { change, doors: [] }));
    if (door !== undefined) entry.doors.push(door);
  }

  /** The gravest first, then as they were found. */
  findings(): readonly ReviewFinding[] {
    const all = [...this.byKey.values()].map(({ change, doors }): ReviewFinding => {
      const [level, message] = FINDINGS[change.id];
      return {
        id: change.id,
        level: change.level ?? level,
        place: change.place,
        document: change.document ?? "new",
        message,
        old: change.old,
        new: change.new,
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
    // Every path below a path that ends in a slash begins with that path.
    return path !== base && path === `${base}*` && all.has(base) ? [path] : all.has(`${path}*`) ? [] : [path];
  });
}
