import { connect } from "node:net";
import * as z from "zod";
import { printableValue } from "../../../model/text/printable.js";
import { type Problem, problem } from "../../../model/serving.js";
import { Untrusted } from "../../../model/text/untrusted.js";
import type { ControlOutcome, ControlRequest, Done } from "./control.js";
import { OVERVIEW, TRANSFER } from "../../overviewSchema.js";

/** Asks a running master, and waits for the outcome. If the master is replaced in the meantime, asks its successor. */
export async function askMaster(
  path: string,
  request: ControlRequest,
  timeoutMs: number,
): Promise<ControlOutcome> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const outcome = await askOnce(path, request, deadline - performance.now());
    if (outcome.ok || outcome.problems[0]?.code !== "control.replaced") return outcome;
    if (performance.now() > deadline) return outcome;
  }
}

function askOnce(path: string, request: ControlRequest, timeoutMs: number): Promise<ControlOutcome> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const read: Buffer[] = [];
    let bytes = 0;
    const done = (outcome: ControlOutcome): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(outcome);
    };
    const failed = (
      code: "control.not-running" | "control.no-response",
      message: string,
      fix?: string,
    ): void =>
      done({ ok: false, problems: [problem(code, path, message, fix === undefined ? {} : { fix })] });
    const timer = setTimeout(
      () => failed("control.no-response", `no response within ${Math.round(timeoutMs / 1000)} s`),
      timeoutMs,
    );
    let asked = false;
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (asked) failed("control.no-response", ENDED);
      else
        failed(
          "control.not-running",
          `cannot connect to a running portico: ${error.code}`,
          FIXES[error.code!],
        );
    });
    socket.once("connect", () => {
      asked = true;
      socket.write(`${JSON.stringify(request)}\n`);
    });
    socket.on("data", (chunk: Buffer) => {
      const end = chunk.indexOf("\n");
      read.push(end === -1 ? chunk : chunk.subarray(0, end));
      bytes += chunk.length;
      if (end === -1 && bytes < RESPONSE_BYTES_MAX) return;
      const outcome = new Untrusted(Buffer.concat(read)).opened(OUTCOME, RESPONSE_VALUES_MAX);
      if (outcome !== undefined) done(outcome);
      else failed("control.no-response", "the response cannot be read");
    });
    socket.once("end", () => failed("control.no-response", ENDED));
  });
}

const FIXES: Readonly<Record<string, string>> = {
  EACCES: "Run the command as root, or as the user of the service.",
};
const ENDED = "portico ended before it sent a response";
const RESPONSE_BYTES_MAX = 1_048_576;
const RESPONSE_VALUES_MAX = 100_000;

/**
 * Root reads the response of a less privileged service: these schemas refuse everything unexpected, and its text must
 * not look like this command's own messages. A newer master may have codes and fields that this release does not know.
 */

const TEXT = z.string().transform(printableValue);
const NAME = z.string().regex(/^\w{1,64}$/);
/** All that a Date can be (ECMAScript, 21.4.1.1). */
const TIME = z.number().min(-8.64e15).max(8.64e15);

const PROBLEM = z.object({
  // All codes have this form, and none will be longer.
  code: z.string().regex(/^[a-z-]{1,32}\.[a-z0-9-]{1,64}$/),
  path: TEXT,
  message: TEXT,
  received: TEXT.optional(),
  allowed: TEXT.optional(),
  fix: TEXT,
}) as unknown as z.ZodType<Problem>;

const CERTIFICATE = z.object({
  names: z.array(TEXT).min(1),
  listeners: z.array(TEXT),
  source: z.enum(["files", "acme", "temporary"]),
  from: TEXT,
  issuer: TEXT,
  notBefore: TIME,
  notAfter: TIME,
  state: z.enum(["none", "ordering", "waiting", "valid"]).optional(),
  renewAt: TIME.optional(),
  nextAttempt: TIME.optional(),
  lastError: z.object({ code: NAME, message: TEXT, fix: TEXT, at: TIME }).optional(),
  waitsFor: TEXT.optional(),
});

const WORKER = z.object({
  pid: z.int(),
  accepts: z.boolean(),
  holdings: z.record(NAME, z.number()).optional(),
});

const UPSTREAM = z.object({
  name: TEXT,
  servers: z.array(
    z.object({
      url: TEXT,
      backup: z.boolean(),
      inProgress: z.number(),
      drained: z.boolean(),
      down: z.boolean(),
      checked: z.boolean().default(false),
      outIn: z.number(),
      ignoredIn: z.number(),
      why: TEXT.optional(),
    }),
  ),
});

const PAUSES = z.object({
  maintenance: z.array(
    z.object({ site: TEXT.optional(), since: TIME, until: TIME.optional(), message: TEXT.optional() }),
  ),
  quiesce: z
    .object({
      since: TIME,
      refusesSince: TIME.optional(),
      reads: z.boolean(),
      site: TEXT.optional(),
      ...{ writes: z.number(), lasting: z.number(), slow: z.number(), silent: z.number() },
      transfers: z.array(TRANSFER),
    })
    .optional(),
});

const DONE = z.object({
  message: TEXT,
  warnings: z.array(PROBLEM).default([]),
  loaded: z.object({ runtime: TEXT, config: TEXT, tls: TEXT }).optional(),
  workers: z.array(WORKER).optional(),
  certificates: z.array(CERTIFICATE).optional(),
  upstreams: z.array(UPSTREAM).optional(),
  pauses: PAUSES.optional(),
  bans: z
    .array(
      z.object({
        ...{ address: TEXT, guard: TEXT, reason: z.enum(["slowed", "closed"]) },
        ...{ wrong: z.number(), until: TIME },
      }),
    )
    .optional(),
  notified: z.array(z.object({ name: TEXT, type: TEXT, why: TEXT.optional() })).optional(),
  overview: OVERVIEW.optional(),
}) as unknown as z.ZodType<Done>;

const OUTCOME: z.ZodType<ControlOutcome> = z.union([
  z.object({ ok: z.literal(true), value: DONE }),
  z.object({ ok: z.literal(false), problems: z.array(PROBLEM) }),
]);
