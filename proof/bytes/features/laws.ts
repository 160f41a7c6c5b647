import { HOST } from "../clients.js";
import type { Arrival, Running } from "../running.js";
import type { Happening } from "./events.js";
import type { FileRequest } from "./files.js";
import type { Scene, Session } from "./scene.js";
import { isRenewal, type Closing, REFUSALS, renewalOf, userOf } from "./closed.js";
import { type FeatureName, PAGE_MARK, REWRITTEN, SESSION } from "./table.js";

/** What an exchange of a scene may get, by the rules of docs/decisions.md and docs/pauses.md. */

export interface Played {
  readonly running: Running;
  readonly session: Session;
  readonly path: string;
  readonly file: FileRequest | undefined;
  /** The cookie of the session that it sent. */
  readonly cookie: string | undefined;
  readonly begun: number;
  readonly over: number;
}

/** The kernel may still take a request for a server that has just ended. */
const KILL_MS = 250;

export function judge(played: Played, happenings: readonly Happening[], scene: Scene): string[] {
  const { running } = played;
  const { head } = running;
  if (played.session.keptOutBy !== undefined) return strangerFaults(running, played.session.keptOutBy);
  const faults = [
    ...refusalFaults(played, happenings, scene),
    ...arrivalFaults(played, scene),
    ...portalFaults(played, scene),
  ];
  const isRefused = head !== undefined && mayBeRefused(played, happenings, head.status);
  // What was cut off may be: but what came before that is right.
  if (isRefused || mayBeCut(played, happenings)) running.abandoned = true;
  else if (head !== undefined && head.status < 300) faults.push(...fieldFaults(played, scene));
  // A client that leaves is no reason for it.
  else if (running.abandoned && head !== undefined && head.status >= 500)
    faults.push(`status ${head.status}`);
  return [...running.judge(), ...faults];
}

/** Whatever happens meanwhile, and whatever the request is, a policy refuses a stranger (docs/access.md). */
function strangerFaults(running: Running, keptOutBy: Closing): string[] {
  const { arrivals, head } = running;
  running.abandoned = true;
  return [
    ...(head?.status === REFUSALS[keptOutBy] ? [] : [`${head?.status ?? "no response"} for a stranger`]),
    ...arrivals.map(({ server }) => `${server} got the request of a stranger`),
  ];
}

/**
 * The rules: during a maintenance all get 503, and during a quiesce those that write (pauses.md), from the order to its end.
 * Who was under way when its server ended gets 502 (decisions 4.5). Nobody else gets 5xx: who comes while the only server
 * is away waits (decisions 4.6), and where there are several another one gets the request (upstreams.md).
 */
function mayBeRefused(played: Played, happenings: readonly Happening[], status: number): boolean {
  if (status === 503) return happenings.some((one) => concerns(one, played) && meets(one, played));
  return status === 502 && mayBeCut(played, happenings);
}

const meets = ({ mayFrom, mayUntil }: Happening, { begun, over }: Played): boolean =>
  begun <= mayUntil && over >= mayFrom;

/** Whether a server ended while it might have the request. */
function mayBeCut({ running, begun, over }: Played, happenings: readonly Happening[]): boolean {
  if (running.exchange.responder === "file") return false;
  return happenings.some(
    ({ event, mayFrom }) => event.kind === "outage" && begun <= mayFrom + KILL_MS && over >= mayFrom,
  );
}

/** Whether a pause refuses such a request; a WebSocket writes only if its route says so. */
function concerns({ event }: Happening, { running }: Played): boolean {
  const { transfer } = running.exchange;
  return event.kind === "maintenance" || (event.kind === "quiesce" && ["upload", "both"].includes(transfer));
}

function refusalFaults(played: Played, happenings: readonly Happening[], scene: Scene): string[] {
  const { running, begun, over } = played;
  const { head } = running;
  const faults: string[] = [];
  for (const happening of happenings.filter((one) => concerns(one, played))) {
    const { event, mustFrom, mustUntil } = happening;
    if (begun >= mustFrom && over <= mustUntil && head?.status !== 503)
      faults.push(`${head?.status ?? "no response"} during ${event.kind}`);
    const late = running.arrivals.some(({ at }) => at >= mustFrom && at <= mustUntil);
    if (event.kind === "quiesce" && late) faults.push("the upstream got a write during quiesce");
  }
  if (head === undefined || head.status < 500) return faults;
  const { fields, text, status } = head;
  const isOwn = scene.features.includes("errorPages");
  if (status === 503 && fields["retry-after"] === undefined) faults.push("503 without Retry-After");
  const isPage = text.includes(`${PAGE_MARK} ${status}`);
  if (isPage !== (isOwn && played.session.isBrowser))
    faults.push(`${status} with ${isPage ? "the" : "another"} page: ${text.slice(0, 60)}`);
  const isKept = fields["cache-control"]?.endsWith("no-store") !== true;
  if ((isOwn || status === 503) && (fields.vary !== "Accept" || isKept))
    faults.push(`${status} with Vary ${fields.vary}, Cache-Control ${fields["cache-control"]}`);
  return faults;
}

/** How often it was sent, and where (decisions 4.5, 2.1). */
function arrivalFaults({ running, path, session }: Played, { features }: Scene): string[] {
  const { arrivals, exchange, head } = running;
  const most = exchange.transfer === "download" ? 2 : 1;
  const target = features.includes("rewrite") ? path.replace("/web", REWRITTEN) : path;
  const odd = arrivals.filter((one) => one.target !== target);
  return [
    ...(arrivals.length <= most ? [] : [`sent ${arrivals.length} times`]),
    ...(head?.status === 503 && arrivals.length > 0 ? ["refused, and sent"] : []),
    ...arrivals.flatMap((one) => namedFaults(one, features, session)),
    ...odd.map((one) => `the upstream got ${one.target} for ${path}`),
  ];
}

/** The upstream gets the name that the proxy knows, whatever the client says, and no password. */
function namedFaults({ fields }: Arrival, features: readonly FeatureName[], session: Session): string[] {
  const user = userOf(features, session);
  const names = [fields["remote-user"], fields["remote_user"]].filter((one) => one !== undefined);
  return [
    ...(names.join() === (user ?? "") ? [] : [`the upstream got the user ${names.join()} for ${user}`]),
    ...(fields.authorization === undefined ? [] : ["the upstream got a password"]),
  ];
}

/** The portal's cookie for this request, and no other's, comes with the response, whatever makes it. */
function portalFaults({ running, session, path }: Played, { features }: Scene): string[] {
  const { head } = running;
  if (head === undefined) return [];
  const got = (head.fields["set-cookie"] ?? []).filter(isRenewal);
  const expected = features.includes("forwardAuth") ? [renewalOf(session, path)] : [];
  return got.join() === expected.join() ? [] : [`${head.status} with the portal's cookies ${got.join()}`];
}

/** Fields that features are about. */
function fieldFaults({ running, file, path, session }: Played, scene: Scene): string[] {
  const { fields } = running.head!;
  if (file === undefined) {
    const place = fields["content-location"];
    const isTunnel = running.exchange.transfer === "tunnel";
    // The URL that its server named (decisions 5.1).
    const url = `${session.client === "http" ? "http" : "https"}://${HOST}${path}`;
    return isTunnel || place === url ? [] : [`Content-Location: ${place} for ${url}`];
  }
  const encoded = scene.features.includes("precompressed");
  const [coding, vary] = [fields["content-encoding"], fields.vary];
  const asExpected = coding === file.coding && (vary === "Accept-Encoding") === encoded;
  return asExpected ? [] : [`Content-Encoding ${coding}, Vary ${vary} for ${file.accepted}`];
}

/** Sessions stay with their servers. */
export class Sessions {
  /** The server of each value of the cookie. */
  private readonly servers = new Map<string, string>();

  constructor(private readonly scene: Scene) {}

  /** The cookie after an exchange. */
  static cookieOf({ running, cookie }: Played): string | undefined {
    const set = running.head?.fields["set-cookie"]?.find((one) => one.startsWith(`${SESSION}=`));
    return set === undefined ? cookie : /=([^;]*)/.exec(set)![1]!;
  }

  /** Is called in the order in which the exchanges of a session were played. */
  judge(played: Played, happenings: readonly Happening[]): string[] {
    const { features, events } = this.scene;
    const { running, cookie, over } = played;
    // Servers that fail requests are out for a while, and their sessions are at others (docs/upstreams.md).
    const fail = happenings.some(({ event, mayFrom }) => event.kind === "unanswered" && mayFrom <= over);
    if (!features.includes("sticky") || fail) return [];
    const server = running.arrivals.at(-1)?.server;
    const after = Sessions.cookieOf(played);
    if (server === undefined || after === undefined) return [];
    // Its own server has ended: where the session is now depends on how long that is out.
    const ended = (name: string): boolean =>
      happenings.some(
        ({ event, mayFrom }) =>
          event.kind === "outage" && `server${event.server}` === name && mayFrom <= over,
      );
    const home = cookie === undefined ? undefined : this.servers.get(cookie);
    // What the proxy sets names the server; a session of the application's cookie may be elsewhere while one is out.
    const isSure = after !== cookie || !events.some(({ server: one }) => ended(`server${one}`));
    if (!this.servers.has(after) && isSure) this.servers.set(after, server);
    if (home === undefined || ended(home)) return [];
    if (server !== home) return [`a session of ${home} is at ${server}`];
    return after === cookie ? [] : [`a session of ${home} gets another cookie`];
  }
}
