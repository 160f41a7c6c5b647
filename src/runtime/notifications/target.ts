import { getSystemErrorMap } from "node:util";
import type { NotificationTargetConfig } from "../../model/serving.js";
import type { FindCredential } from "../load/credentials.js";
import { notificationSecrets } from "../load/notificationFiles.js";
import { BadServer, HttpsClient } from "../tls/httpsClient.js";
import { type Digest, type Message, messageOf, pingOf } from "./messages.js";
import type { SentNotice } from "./notice.js";

/** The interface that targets use. */
export interface TargetHost {
  log(level: "warn" | "info", message: string): void;
  /** Finds the systemd credential for a file; called each time, because a reload gets new credentials. */
  find(): Promise<FindCredential>;
  /** Called when a target accepted a message. */
  delivered(): void;
}

/** How long tries are apart; tests have less time. */
export interface Pace {
  readonly firstMs: number;
  readonly mostMs: number;
  readonly deadlineMs: number;
}

export const PACE: Pace = { firstMs: 5_000, mostMs: 600_000, deadlineMs: 10_000 };

/** The common part of all targets. */
abstract class AnyTarget {
  protected readonly stopping = new AbortController();
  private failing = false;

  constructor(
    readonly config: NotificationTargetConfig,
    protected readonly host: TargetHost,
    protected readonly pace: Pace,
  ) {}

  stop(): void {
    this.stopping.abort();
  }

  protected async deliver(digest: Digest | undefined): Promise<Taken> {
    const { config, host, pace, stopping } = this;
    const secrets = await notificationSecrets(config, await host.find());
    if (typeof secrets === "string") return { ok: false, why: secrets };
    const message =
      digest === undefined || config.type === "healthcheck"
        ? pingOf(secrets)
        : messageOf(config.type, secrets, digest);
    return send(message, secrets.roots, stopping.signal, pace.deadlineMs);
  }

  /** Logs the first failure, and the first success after failures. */
  protected say(taken: Taken): void {
    if (this.stopping.signal.aborted || taken.ok !== this.failing) return;
    this.failing = !taken.ok;
    const name = `notification target "${this.config.name}"`;
    if (taken.ok) this.host.log("info", `${name} accepts messages again`);
    else this.host.log("warn", `the message to ${name} was not delivered: ${taken.why}; portico will retry`);
  }
}

/** A target for messages. Notices that wait for it are sent in one message once it accepts messages. */
export class MessageTarget extends AnyTarget {
  private waiting: SentNotice[] = [];
  private dropped = 0;
  private failures = 0;
  private timer: NodeJS.Timeout | undefined;
  private sending = false;

  /** Never waits, and never keeps more than a few. */
  add(told: readonly SentNotice[]): void {
    this.waiting.push(...told);
    const over = this.waiting.length - WAITING_MAX;
    if (over > 0) {
      this.waiting.splice(0, over);
      this.dropped += over;
    }
    if (this.timer === undefined) void this.next();
  }

  /** Sends a message now, whatever waits; resolves with how it was taken. */
  async test(told: SentNotice): Promise<Taken> {
    return this.deliver({ told: [told], dropped: 0, at: Date.now() });
  }

  override stop(): void {
    super.stop();
    clearTimeout(this.timer);
  }

  private async next(): Promise<void> {
    this.timer = undefined;
    if (this.sending || this.waiting.length === 0 || this.stopping.signal.aborted) return;
    this.sending = true;
    const { waiting: told, dropped } = this;
    this.waiting = [];
    this.dropped = 0;
    const taken = await this.deliver({ told, dropped, at: Date.now() });
    this.sending = false;
    this.say(taken);
    if (taken.ok) {
      this.failures = 0;
      this.host.delivered();
    } else {
      this.failures += 1;
      const later = this.waiting;
      this.waiting = [];
      this.dropped += dropped;
      this.timer = setTimeout(() => void this.next(), this.delay(taken.retryMs));
      this.timer.unref();
      this.add([...told, ...later]);
      return;
    }
    // Notices that arrived meanwhile.
    void this.next();
  }

  private delay(wanted = 0): number {
    const { firstMs, mostMs } = this.pace;
    const ms = Math.min(mostMs, firstMs * 2 ** Math.min(20, this.failures - 1));
    // Many hosts that lost the same target must not come back at the same moment.
    return Math.max(wanted, ms * (0.75 + Math.random() / 2));
  }
}

/** A target that is pinged while there are no problems. */
export class PingTarget extends AnyTarget {
  private readonly timer: NodeJS.Timeout;
  private asking = false;

  /** @param isWell whether it should be pinged now */
  constructor(
    config: Extract<NotificationTargetConfig, { readonly type: "healthcheck" }>,
    host: TargetHost,
    pace: Pace,
    private readonly isWell: () => boolean,
  ) {
    super(config, host, pace);
    this.timer = setInterval(() => void this.ping(), config.intervalMs).unref();
    void this.ping();
  }

  async test(): Promise<Taken> {
    return this.deliver(undefined);
  }

  override stop(): void {
    super.stop();
    clearInterval(this.timer);
  }

  private async ping(): Promise<void> {
    if (this.asking || !this.isWell()) return;
    this.asking = true;
    this.say(await this.deliver(undefined));
    this.asking = false;
  }
}

const WAITING_MAX = 100;

/** How a message was taken. */
export type Taken =
  | { readonly ok: true }
  /** The reason without the URL, which may be secret, and when to try again, if the target responded with that. */
  | { readonly ok: false; readonly why: string; readonly retryMs?: number };

/**
 * Sends one message: the secret is only for the configured URL.
 *
 * @param roots PEM of the roots that are trusted; by default those that Node brings
 */
async function send(
  message: Message,
  roots: string | undefined,
  signal: AbortSignal,
  deadlineMs: number,
): Promise<Taken> {
  try {
    const client = new HttpsClient({ roots, signal, deadlineMs, stoppingMs: 0, bodyBytesMax: 0 });
    const { status, headers } = await client.send(message);
    if (status >= 200 && status < 300) return { ok: true };
    const seconds = Number(headers["retry-after"]);
    const retryMs = seconds > 0 && seconds <= 3_600 ? { retryMs: seconds * 1_000 } : {};
    return { ok: false, why: `the server responded with ${status}${hintOf(status)}`, ...retryMs };
  } catch (error) {
    return { ok: false, why: signal.aborted ? "portico stops" : reasonOf(error as Error) };
  }
}

function hintOf(status: number): string {
  if (status >= 300 && status < 400) return ", and redirects are not followed";
  if (status === 401 || status === 403) return ": it rejects the token, or requires one";
  return status === 404 || status === 405 ? ": the URL has the wrong path" : "";
}

/** Node's own messages may have the host of the URL, which is part of the secret. */
function reasonOf(error: NodeJS.ErrnoException): string {
  const { code = "", errno, message } = error;
  if (error instanceof BadServer || code === "ERR_TLS_FLOOD") return message;
  if (/^(?:DEPTH_|SELF_|UNABLE_)/.test(code))
    return `its certificate is not trusted (${code}): one of a private authority needs \`roots\``;
  if (/^(?:ERR_TLS_CERT_|CERT_)/.test(code)) return `its certificate is not trusted (${code})`;
  if (code === "ENOTFOUND") return "its name has no address (ENOTFOUND)";
  const words = getSystemErrorMap().get(errno ?? 0)?.[1];
  return `it cannot be reached (${words ?? (code === "" ? "the connection failed" : code)})`;
}
