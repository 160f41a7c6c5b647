import { chmodSync, renameSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { type Problem, problem, type Result } from "../../model/serving.js";
import { type ControlRequest, parseRequest } from "./controlRequest.js";
import type { TestOutcome } from "../notifications/notifier.js";
import type { WorkerHoldings } from "../worker/holdings.js";
import type { ListedCertificate } from "./certificateList.js";
import type { ListedPauses } from "./listedPauses.js";
import type { ListedUpstream } from "./listedUpstreams.js";
import type { Overview } from "../status/overview.js";
import type { LoadedState } from "../load/loadConfig.js";

/** The outcome of a request. */
export type ControlOutcome = Result<Done>;

export interface Done {
  /** One sentence without a full stop. */
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
  /** The response to `notify`. */
  readonly notified?: readonly TestOutcome[];
  /** The response to `overview`. */
  readonly overview?: Overview;
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
