import * as z from "zod";
import { printableValue } from "../model/text/printable.js";

/**
 * The current state for people: the one document that the status page, `status.json`, the action `status` and `portico
 * status` show. The master makes it on request. All of it is JSON. Texts come from the config, from Portico itself, or
 * from clients; the last are short, printable, and without query strings and tokens. Times are milliseconds since 1970.
 *
 * Only root's terminal runs the schema, which does not trust the master: texts are made printable, and an overview that is
 * longer than a master makes it is refused. All others have its types (`status/overview.ts`).
 */

const TEXT = z.string().max(4_096).transform(printableValue);
const NUMBER = z.number();
/** All that a Date can be (ECMAScript, 21.4.1.1). */
const TIME = z.number().min(-8.64e15).max(8.64e15);
const numbers = z.array(NUMBER).max(1_000);

/** A request in progress; short. */
export const TRANSFER = z.object({
  /** Number of the request in its worker: the same whenever it is shown. */
  id: z.int(),
  /** Name of the virtual server, and of the route. */
  ...{ server: TEXT, route: TEXT },
  /** The route's path, with `…` for the rest of the request's path: `/sync/…/`. */
  path: TEXT,
  /** Name of the file that the request's path ends with, shortened; absent where it ends with none. */
  file: TEXT.optional(),
  /** A known method, or `other`. */
  method: TEXT,
  /** Address of the client. */
  client: TEXT,
  /** The client's program from its `User-Agent`, shortened: `Firefox 128`, `rclone/v1.68.1`; empty if it names none. */
  program: TEXT,
  /** The direction of most of its bytes: from the client, to the client, or both in a tunnel. */
  kind: z.enum(["upload", "download", "tunnel"]),
  /** Status of the response; 0 before its head was sent. */
  status: z.int(),
  /** Milliseconds since its head was received. */
  ageMs: NUMBER,
  /** Bytes of bodies that the client has sent, and was sent. */
  ...{ bytesIn: NUMBER, bytesOut: NUMBER },
  /** Bytes a second in both directions, since it was last looked at, or since it began. */
  bytesPerSecond: NUMBER,
  /** Length of the body that `kind` means; absent if that is unknown. */
  bytesTotal: z.number().min(1).optional(),
});

const SERVER = z.object({
  url: TEXT,
  backup: z.boolean(),
  /**
   * `unasked`: no request and no check has reached it so far. `out`: requests failed there, and workers leave it out for
   * that. `failing`: the same, and it still gets requests, because no other server is left. `down`: its checks fail; it
   * gets no requests, unless it is the only server.
   */
  state: z.enum(["unasked", "up", "failing", "out", "drained", "down"]),
  /** Requests that it has; absent where they are not counted. */
  inProgress: NUMBER.optional(),
  /** Failed requests of the last minute; 0 where they are not counted, with several servers. */
  failures: NUMBER,
  /** Why it is down, out or failing, where that is known. */
  why: TEXT.optional(),
});

const CERTIFICATE = z.object({
  names: z.array(TEXT).min(1),
  /** Those of the virtual servers with one of the names. */
  sites: z.array(TEXT).optional(),
  listeners: z.array(TEXT),
  issuer: TEXT,
  source: z.enum(["files", "acme", "temporary"]),
  notAfter: TIME,
  /** Whole days until then; below 0 once it has ended. */
  daysLeft: NUMBER,
  /** Whether that is near, for how long the certificate is valid. */
  end: z.enum(["ended", "last", "soon", "later"]),
  /** Why it was not renewed. */
  problem: z.object({ message: TEXT, fix: TEXT }).optional(),
  /** Address of the host that asks the authority, if this host does not have the address now. */
  waitsFor: TEXT.optional(),
});

const EVENT = z.object({
  at: TIME,
  level: z.enum(["info", "warn", "error", "crit"]),
  message: TEXT,
  problems: z.array(z.object({ path: TEXT, message: TEXT, fix: TEXT })),
});

const NODE = z.object({
  id: TEXT,
  kind: z.enum(["listener", "server", "route", "upstream", "response"]),
  lines: z.array(TEXT),
  /** Something is wrong with it. */
  trouble: z.literal(true).optional(),
});

export const OVERVIEW = z.object({
  /** Release of the master. */
  version: TEXT,
  /** When this was made, and when the master began to serve. */
  ...{ at: TIME, since: TIME },
  /** Counts up with each config that is put into service. */
  generation: z.int(),
  /** `stopping`: it finishes requests in progress. */
  state: z.enum(["serving", "stopping"]),
  workers: z.object({ running: z.int(), silent: z.int() }),
  /** `https 0.0.0.0:443`, in the order of the config. */
  listeners: z.array(TEXT),
  /** By the second, as means of a period; `connections` are open ones of clients. */
  traffic: z.object({
    ...{ requests: NUMBER, bytesIn: NUMBER, bytesOut: NUMBER, connections: NUMBER },
    /** Means of periods, the oldest first; each list has a number for each period. */
    history: z.object({
      everyMs: z.number().min(1),
      /** The most periods there may be; until then the time before is not known. */
      periods: z.int().min(1).max(1_000),
      ...{ requests: numbers, bytesIn: numbers, bytesOut: numbers },
    }),
  }),
  /** `pid`: process of the worker that has it; `site`: of its virtual server. */
  transfers: z.array(TRANSFER.extend({ pid: z.int(), site: TEXT.optional() })),
  /** Requests in progress besides `transfers`. */
  moreTransfers: z.int(),
  /** `sites`: those of the virtual servers with a route to it. */
  upstreams: z.array(z.object({ name: TEXT, sites: z.array(TEXT).optional(), servers: z.array(SERVER) })),
  certificates: z.array(CERTIFICATE),
  /** Authorities of clients (`ca`), and their lists of revoked certificates (`crl`); absent without any. */
  clientAuthorities: z
    .array(
      z.object({
        name: TEXT,
        file: z.enum(["ca", "crl"]),
        /** Whole days until its end; below 0 once it has ended. */
        daysLeft: NUMBER,
        end: z.enum(["ended", "last", "soon", "later"]),
      }),
    )
    .optional(),
  /** Requests since the start that were refused for their clients' certificates; absent without any. */
  refusedCertificates: z.array(z.object({ server: TEXT, reason: TEXT, count: NUMBER })).optional(),
  /** A sentence for each maintenance or quiesce in force. */
  pauses: z.array(TEXT),
  /** Reloads, upgrades, warnings and errors of the master, the newest first. */
  events: z.array(EVENT),
  /** Columns from left to right, and the requests a second between them. */
  topology: z.object({
    columns: z.array(z.object({ title: TEXT, nodes: z.array(NODE) })),
    edges: z.array(z.object({ from: TEXT, to: TEXT, requests: NUMBER })),
  }),
});
