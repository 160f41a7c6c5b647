import * as z from "zod";
import { printableValue } from "../../model/printable.js";

/**
 * The schema of an overview that root's terminal shows. The master is not trusted: texts are made printable, and an
 * overview that is longer than a master makes it is refused.
 */

const TEXT = z.string().max(4_096).transform(printableValue);
const NUMBER = z.number();
/** All that a Date can be (ECMAScript, 21.4.1.1). */
const TIME = z.number().min(-8.64e15).max(8.64e15);
const numbers = z.array(NUMBER).max(1_000);

export const TRANSFER = z.object({
  id: z.int(),
  ...{ server: TEXT, route: TEXT, path: TEXT, file: TEXT.optional(), method: TEXT },
  ...{ client: TEXT, program: TEXT },
  kind: z.enum(["upload", "download", "tunnel"]),
  status: z.int(),
  ...{ ageMs: NUMBER, bytesIn: NUMBER, bytesOut: NUMBER, bytesPerSecond: NUMBER },
  bytesTotal: z.number().min(1).optional(),
});

const SERVER = z.object({
  url: TEXT,
  backup: z.boolean(),
  state: z.enum(["unasked", "up", "failing", "out", "drained", "down"]),
  inProgress: NUMBER.optional(),
  failures: NUMBER,
  why: TEXT.optional(),
});

const CERTIFICATE = z.object({
  names: z.array(TEXT).min(1),
  sites: z.array(TEXT).optional(),
  listeners: z.array(TEXT),
  issuer: TEXT,
  source: z.enum(["files", "acme", "temporary"]),
  notAfter: TIME,
  daysLeft: NUMBER,
  end: z.enum(["ended", "last", "soon", "later"]),
  problem: z.object({ message: TEXT, fix: TEXT }).optional(),
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
  trouble: z.literal(true).optional(),
});

export const OVERVIEW = z.object({
  version: TEXT,
  ...{ at: TIME, since: TIME },
  generation: z.int(),
  state: z.enum(["serving", "stopping"]),
  workers: z.object({ running: z.int(), silent: z.int() }),
  listeners: z.array(TEXT),
  traffic: z.object({
    ...{ requests: NUMBER, bytesIn: NUMBER, bytesOut: NUMBER, connections: NUMBER },
    history: z.object({
      everyMs: z.number().min(1),
      periods: z.int().min(1).max(1_000),
      ...{ requests: numbers, bytesIn: numbers, bytesOut: numbers },
    }),
  }),
  transfers: z.array(TRANSFER.extend({ pid: z.int(), site: TEXT.optional() })),
  moreTransfers: z.int(),
  upstreams: z.array(z.object({ name: TEXT, sites: z.array(TEXT).optional(), servers: z.array(SERVER) })),
  certificates: z.array(CERTIFICATE),
  pauses: z.array(TEXT),
  events: z.array(EVENT),
  topology: z.object({
    columns: z.array(z.object({ title: TEXT, nodes: z.array(NODE) })),
    edges: z.array(z.object({ from: TEXT, to: TEXT, requests: NUMBER })),
  }),
});
