import * as z from "zod";
import type { BeginMaintenance, QuiesceRequest } from "./listedPauses.js";
import type { NamedServer } from "./listedUpstreams.js";

/** A request to a running master. */
export type ControlRequest =
  | { readonly command: "reload" }
  /** What it runs and has loaded; changes nothing. */
  | { readonly command: "status" }
  /** What its workers hold at the moment (`holdings.ts`); changes nothing. */
  | { readonly command: "holdings" }
  /** What goes on, for people; changes nothing. */
  | { readonly command: "overview" }
  /** The certificates that it serves; changes nothing. */
  | { readonly command: "certificates" }
  /** Ask the authority for a new certificate now; of the one with that name, or of all that come by ACME. */
  | { readonly command: "renew"; readonly name?: string }
  /** The servers of upstreams that have several; changes nothing. */
  | { readonly command: "upstreams" }
  /** A server gets no new request from now on, or some again. */
  | ({ readonly command: "drain" | "undrain" } & NamedServer)
  /** What requests are refused for; changes nothing. */
  | { readonly command: "pauses" }
  /** Begins the maintenance of a virtual server, or of all; without `begin` ends it. */
  | { readonly command: "maintenance"; readonly server?: string; readonly begin?: BeginMaintenance }
  | ({ readonly command: "quiesce" } & QuiesceRequest)
  /** Ends the quiesce that this id began. */
  | { readonly command: "resume"; readonly id: string }
  /** Tells the targets of notifications that an activation was rolled back; without it sends them a test. */
  | { readonly command: "notify"; readonly rolledBack?: { readonly reason: string; readonly fix: string } }
  /** Paths of the Node binary and the runtime to start; default: those that run now. */
  | { readonly command: "upgrade"; readonly node?: string; readonly runtime?: string };

/** One schema a command: what is not in it was sent by another release, or by mistake. */

const text = z.string().max(4_096);
/** All that a Date can be (ECMAScript, 21.4.1.1). */
const time = z.number().min(0).max(8.64e15);
const plain = z.enum(["reload", "status", "certificates", "holdings", "upstreams", "pauses", "overview"]);
/** Nobody keeps writes back for longer than a day. */
const limitMs = z.number().min(1).max(86_400_000);

const REQUEST = z.union([
  z.object({ command: plain }),
  z.object({ command: z.literal("renew"), name: text.optional() }),
  z.object({ command: z.enum(["drain", "undrain"]), name: text, server: text }),
  z.object({ command: z.literal("upgrade"), node: text.optional(), runtime: text.optional() }),
  z.object({
    command: z.literal("maintenance"),
    server: text.optional(),
    begin: z.object({ until: time.optional(), message: z.string().max(500).optional() }).optional(),
  }),
  z.object({
    command: z.literal("quiesce"),
    id: z.string().regex(/^[0-9a-f-]{36}$/),
    begin: z.object({ reads: z.boolean(), limitMs }).optional(),
  }),
  z.object({ command: z.literal("resume"), id: text }),
  z.object({
    command: z.literal("notify"),
    rolledBack: z.object({ reason: text, fix: text }).optional(),
  }),
]) as unknown as z.ZodType<ControlRequest>;

/** @returns undefined for what is no request */
export function parseRequest(line: string): ControlRequest | undefined {
  try {
    const read = REQUEST.safeParse(JSON.parse(line));
    return read.success ? read.data : undefined;
  } catch {
    return undefined;
  }
}
