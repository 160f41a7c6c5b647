import { chmodSync, renameSync, rmSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { printableValue } from "../../model/printable.js";
import { type Problem, problem, type Result } from "../../model/serving.js";
import type { WorkerHoldings } from "../worker/holdings.js";
import type { ListedCertificate } from "./certificateList.js";
import type { LoadedState } from "../load/loadConfig.js";

/** A request to a running master. */
export type ControlRequest =
  | { readonly command: "reload" }
  /** What it runs and has loaded; changes nothing. */
  | { readonly command: "status" }
  /** What its workers hold at the moment (`holdings.ts`); changes nothing. */
  | { readonly command: "holdings" }
  /** The certificates that it serves; changes nothing. */
  | { readonly command: "certificates" }
  /** Ask the authority for a new certificate now; of the one with that name, or of all that come by ACME. */
  | { readonly command: "renew"; readonly name?: string }
  /** Paths of the Node binary and the runtime to start; default: those that run now. */
  | { readonly command: "upgrade"; readonly node?: string; readonly runtime?: string };

/** The outcome of a request. */
export type ControlOutcome = Result<Done>;

export interface Done {
  /** One sentence without a full stop. */
  readonly message: string;
  /** Findings that did not keep it from being done. */
  readonly warnings: readonly Problem[];
  /** The answer to `status`; older releases do not know it. */
  readonly loaded?: LoadedState;
  /** The answer to `holdings`. */
  readonly workers?: readonly WorkerHoldings[];
  /** The answer to `certificates`. */
  readonly certificates?: readonly ListedCertificate[];
}

/**
 * The master's control socket: a Unix socket that takes one request per connection, as a line of JSON, and answers with
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

  /** Takes no more requests; those already taken are still answered. */
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
      void this.answer(text).then((line) => socket.end(line, () => socket.destroy()));
    };
    socket.on("data", read);
  }

  private async answer(text: string): Promise<string> {
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

function parseRequest(text: string): ControlRequest | undefined {
  const request = parseJson(text) as
    | { command?: unknown; node?: unknown; runtime?: unknown; name?: unknown }
    | null
    | undefined;
  const { command, node, runtime, name } = request ?? {};
  if (command === "reload" || command === "status" || command === "certificates" || command === "holdings")
    return { command };
  if (command === "renew" && name === undefined) return { command };
  if (command === "renew") return typeof name === "string" ? { command, name } : undefined;
  const paths = [node, runtime].every((path) => path === undefined || typeof path === "string");
  if (command !== "upgrade" || !paths) return undefined;
  return {
    command,
    ...(node === undefined ? {} : { node: node as string }),
    ...(runtime === undefined ? {} : { runtime: runtime as string }),
  };
}

/**
 * Asks a running master, and waits for the outcome. A master that is replaced in the meantime says so, and its
 * successor is asked.
 */
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
    let text = "";
    const done = (outcome: ControlOutcome): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(outcome);
    };
    const failed = (code: "control.not-running" | "control.no-answer", message: string): void =>
      done({ ok: false, problems: [problem(code, path, message)] });
    const timer = setTimeout(
      () => failed("control.no-answer", `no answer within ${Math.round(timeoutMs / 1000)} s`),
      timeoutMs,
    );
    socket.setEncoding("utf8");
    let asked = false;
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (asked) failed("control.no-answer", ENDED);
      else failed("control.not-running", `cannot ask a running portico: ${error.code}`);
    });
    socket.once("connect", () => {
      asked = true;
      socket.write(`${JSON.stringify(request)}\n`);
    });
    socket.on("data", (chunk: string) => {
      text += chunk;
      const end = text.indexOf("\n");
      if (end === -1 && text.length < ANSWER_CHARACTERS_MAX) return;
      const outcome = parseOutcome(text.slice(0, end));
      if (outcome !== undefined) done(outcome);
      else failed("control.no-answer", "the answer cannot be read");
    });
    socket.once("end", () => failed("control.no-answer", ENDED));
  });
}

const ENDED = "portico ended before it had an answer";
const ANSWER_CHARACTERS_MAX = 1_048_576;

/**
 * The answer is the service's word, and root asks: a line of it must not look like one of root's own messages. A newer
 * master may have codes that this release does not know.
 */
function parseOutcome(text: string): ControlOutcome | undefined {
  const outcome = parseJson(text) as ControlOutcome | null | undefined;
  if (outcome?.ok === true && typeof outcome.value?.message === "string") {
    const { value } = outcome;
    const warnings = parseProblems(value.warnings ?? []);
    return warnings && { ok: true, value: { ...value, message: printableValue(value.message), warnings } };
  }
  const problems = outcome?.ok === false ? parseProblems(outcome.problems) : undefined;
  return problems && { ok: false, problems };
}

function parseProblems(value: unknown): readonly Problem[] | undefined {
  return Array.isArray(value) && value.every(isProblem) ? value.map(onItsLines) : undefined;
}

function isProblem(value: unknown): value is Problem {
  const { code, path, message, fix, received, allowed } = (value ?? {}) as Record<string, unknown>;
  const isText = (text: unknown): boolean => typeof text === "string";
  return (
    isText(code) &&
    CODE.test(code as string) &&
    [path, message, fix].every(isText) &&
    [received, allowed].every((text) => text === undefined || isText(text))
  );
}

/** As all codes are written, and no longer than any will be. */
const CODE = /^[a-z-]{1,32}\.[a-z0-9-]{1,64}$/;

function onItsLines({ code, path, message, fix, received, allowed }: Problem): Problem {
  return {
    code,
    path: printableValue(path),
    message: printableValue(message),
    ...(received === undefined ? {} : { received: printableValue(received) }),
    ...(allowed === undefined ? {} : { allowed: printableValue(allowed) }),
    fix: printableValue(fix),
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
