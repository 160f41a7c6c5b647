import { chmodSync, renameSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import * as z from "zod";
import { type Problem, problem, type Result } from "../../../model/serving.js";
import type { TestOutcome } from "../../notifications/notifier.js";
import type { WorkerHoldings } from "../../worker/holdings.js";
import type { ListedCertificate } from "./certificateList.js";
import type { ListedBan } from "./listedBans.js";
import type { BeginMaintenance, ListedPauses, QuiesceRequest } from "./listedPauses.js";
import type { ListedUpstream, NamedServer } from "./listedUpstreams.js";
import type { Overview } from "../../status/overview.js";
import type { LoadedState } from "../../load/loadConfig.js";

/** The outcome of a request. */
export type ControlOutcome = Result<Done>;

export interface Done {
  /** A sentence without a full stop. */
  readonly message: string;
  /** Findings that did not keep it from being done. */
  readonly warnings: readonly Problem[];
  /** The response to `status`. */
  readonly loaded?: LoadedState;
  /** The response to `holdings`. */
  readonly workers?: readonly WorkerHoldings[];
  /** The response to `certificates`. */
  readonly certificates?: readonly ListedCertificate[];
  /** The response to `upstreams`. */
  readonly upstreams?: readonly ListedUpstream[];
  /** The response to `pauses` and `quiesce`. */
  readonly pauses?: ListedPauses;
  /** The response to `bans`. */
  readonly bans?: readonly ListedBan[];
  /** The response to `notify`. */
  readonly notified?: readonly TestOutcome[];
  /** The response to `overview`. */
  readonly overview?: Overview;
}

/**
 * The master's control socket: a Unix socket that takes one request per connection, as a line of JSON, and responds with
 * a line when the outcome is known. Only root and the user that the service runs as can open it.
 *
 * It is created under another name and renamed, so that a new master replaces the old one's socket in one step.
 */
export class ControlServer {
  private readonly server: Server;
  /** Connections that have not sent a request yet. */
  private readonly waiting = new Set<Socket>();

  private constructor(private readonly handle: (request: ControlRequest) => Promise<ControlOutcome>) {
    this.server = createServer({ allowHalfOpen: true }, (socket) => this.accept(socket));
  }

  /** Rejects if the socket cannot be made. */
  static async open(
    path: string,
    handle: (request: ControlRequest) => Promise<ControlOutcome>,
  ): Promise<ControlServer> {
    const control = new ControlServer(handle);
    const draft = `${path}.${process.pid}`;
    rmSync(draft, { force: true });
    await new Promise<void>((resolve, reject) => {
      control.server.once("error", reject).listen(draft, () => resolve());
    });
    chmodSync(draft, 0o600);
    renameSync(draft, path);
    return control;
  }

  /** Takes no more requests; those already taken still get a response. */
  close(): void {
    this.server.close();
    for (const socket of this.waiting) socket.destroy();
  }

  private accept(socket: Socket): void {
    this.waiting.add(socket);
    socket.setEncoding("utf8").setTimeout(REQUEST_MS, () => socket.destroy());
    socket.on("error", () => socket.destroy()).on("close", () => this.waiting.delete(socket));
    let text = "";
    const read = (chunk: string): void => {
      text += chunk;
      if (!text.includes("\n") && text.length < REQUEST_CHARACTERS_MAX) return;
      socket.off("data", read).setTimeout(0);
      // A client that goes away is not waited for.
      socket.resume();
      this.waiting.delete(socket);
      void this.respond(text).then((line) => socket.end(line, () => socket.destroy()));
    };
    socket.on("data", read);
  }

  private async respond(text: string): Promise<string> {
    const request = parseRequest(text);
    const outcome: ControlOutcome =
      request === undefined
        ? {
            ok: false,
            problems: [problem("control.bad-request", "", "the running portico does not know the request")],
          }
        : await this.handle(request);
    return `${JSON.stringify(outcome)}\n`;
  }
}

const REQUEST_MS = 10_000;
const REQUEST_CHARACTERS_MAX = 16_384;

/** A request to a running master. */
export type ControlRequest =
  | { readonly command: "reload" }
  /** Returns the running config and hashes of loaded files; changes nothing. */
  | { readonly command: "status" }
  /** Returns the workers' current holdings (`holdings.ts`); changes nothing. */
  | { readonly command: "holdings" }
  /** Returns the overview for people, of all or of one site; changes nothing. */
  | { readonly command: "overview"; readonly site?: string | undefined }
  /** The certificates that it serves; changes nothing. */
  | { readonly command: "certificates" }
  /** Ask the authority for a new certificate now; of the one with that name, or of all that come by ACME. */
  | { readonly command: "renew"; readonly name?: string }
  /** The servers of upstreams that have several; changes nothing. */
  | { readonly command: "upstreams" }
  /** A server gets no new request from now on, or some again. */
  | ({ readonly command: "drain" | "undrain" } & NamedServer)
  /** The addresses that guards against guessing refuse; changes nothing. */
  | { readonly command: "bans" }
  /** Guards forget what they know of this address. */
  | { readonly command: "unban"; readonly address: string }
  /** Returns the pauses in force; changes nothing. */
  | { readonly command: "pauses" }
  /** Begins the maintenance of a site, or of all; without `begin` ends it. */
  | { readonly command: "maintenance"; readonly site?: string; readonly begin?: BeginMaintenance }
  | ({ readonly command: "quiesce" } & QuiesceRequest)
  /** Ends the quiesce that this id began. */
  | { readonly command: "resume"; readonly id: string }
  /** Tells the targets of notifications that an activation was rolled back; without it sends them a test. */
  | { readonly command: "notify"; readonly rolledBack?: { readonly reason: string; readonly fix: string } }
  /** Paths of the Node binary and the runtime to start; default: those that run now. */
  | { readonly command: "upgrade"; readonly node?: string; readonly runtime?: string };

const text = z.string().max(4_096);
/** All that a Date can be (ECMAScript, 21.4.1.1). */
const time = z.number().min(0).max(8.64e15);
const plain = z.enum(["reload", "status", "certificates", "holdings", "upstreams", "pauses", "bans"]);
/** No quiesce may last longer than a day. */
const ms = z.number().min(1).max(86_400_000);
const terms = {
  reads: z.boolean(),
  site: text.optional(),
  minimumRate: z.number().min(0),
  cutsSlow: z.boolean(),
  refuseMs: ms,
  limitMs: ms,
};

/** Each command has its schema: other requests come from another release, or from a fault. */
const REQUEST = z.union([
  z.object({ command: plain }),
  z.object({ command: z.literal("overview"), site: text.optional() }),
  z.object({ command: z.literal("renew"), name: text.optional() }),
  z.object({ command: z.enum(["drain", "undrain"]), name: text, server: text }),
  z.object({ command: z.literal("unban"), address: text }),
  z.object({ command: z.literal("upgrade"), node: text.optional(), runtime: text.optional() }),
  z.object({
    command: z.literal("maintenance"),
    site: text.optional(),
    begin: z.object({ until: time.optional(), message: z.string().max(500).optional() }).optional(),
  }),
  z.object({
    command: z.literal("quiesce"),
    id: z.string().regex(/^[0-9a-f-]{36}$/),
    begin: z.object(terms).optional(),
    refuses: z.boolean().optional(),
  }),
  z.object({ command: z.literal("resume"), id: text }),
  z.object({
    command: z.literal("notify"),
    rolledBack: z.object({ reason: text, fix: text }).optional(),
  }),
]) as unknown as z.ZodType<ControlRequest>;

/** @returns undefined if the line is not a request */
export function parseRequest(line: string): ControlRequest | undefined {
  try {
    const read = REQUEST.safeParse(JSON.parse(line));
    return read.success ? read.data : undefined;
  } catch {
    return undefined;
  }
}
