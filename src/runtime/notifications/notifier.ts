import type { ProxyConfig } from "../../model/serving.js";
import { replaceSoon } from "../files/durable.js";
import { readTrustedSync } from "../files/trustedFile.js";
import type { Notice } from "./notice.js";
import { type KeptBoard, NoticeBoard } from "./noticeBoard.js";
import { MessageTarget, PACE, type Pace, PingTarget, type Taken, type TargetHost } from "./target.js";

export type NotificationsConfig = NonNullable<ProxyConfig["notifications"]>;

export interface NotifierHost extends Omit<TargetHost, "delivered"> {
  /** Whether it serves, and is not about to end. */
  isServing(): boolean;
}

/** How a target took a test message. */
export interface TestOutcome {
  readonly name: string;
  readonly type: string;
  /** Why it did not take it; absent if it did. */
  readonly why?: string;
}

/** Sends notices to the targets of a config. No request waits for this, and its queues are bounded. */
export class Notifier {
  private readonly board: NoticeBoard;
  private targets: readonly (MessageTarget | PingTarget)[] = [];
  private readonly timer: NodeJS.Timeout;

  /**
   * @param file stores the notices that were sent; undefined if there is no place for it
   * @param digestMs how long to wait for further notices before a message is sent
   */
  constructor(
    config: NotificationsConfig,
    private readonly file: string | undefined,
    private readonly host: NotifierHost,
    private readonly pace: Pace = PACE,
    digestMs?: number,
  ) {
    this.board = new NoticeBoard(config.repeatMs, digestMs);
    if (file !== undefined) this.board.recall(readBoard(file));
    this.use(config);
    this.timer = setInterval(() => this.look(), Math.min(LOOK_MS, digestMs ?? LOOK_MS)).unref();
  }

  /** Continues with another config; queued messages for unchanged targets are still sent. */
  use({ targets, repeatMs }: NotificationsConfig): void {
    this.board.repeatAfter(repeatMs);
    const host = { ...this.targetHost() };
    const same = (config: object) => (one: MessageTarget | PingTarget) =>
      JSON.stringify(one.config) === JSON.stringify(config);
    const next = targets.map(
      (config) =>
        this.targets.find(same(config)) ??
        (config.type === "healthcheck"
          ? new PingTarget(config, host, this.pace, () => this.board.isCalm && this.host.isServing())
          : new MessageTarget(config, host, this.pace)),
    );
    for (const one of this.targets) if (!next.includes(one)) one.stop();
    this.targets = next;
  }

  /** @param notices all current problems of one kind */
  observe(kind: string, notices: readonly Notice[]): void {
    this.board.observe(kind, notices, Date.now());
  }

  raise(notice: Notice): void {
    this.board.raise(notice, Date.now());
  }

  resolve(key: string): void {
    this.board.resolve(key);
  }

  happened(notice: Notice): void {
    this.board.happened(notice, Date.now());
  }

  /** Sends each target a message now; resolves when all have responded, or had time to. */
  test(): Promise<readonly TestOutcome[]> {
    const told = { ...TEST, state: "event", since: Date.now() } as const;
    return Promise.all(
      this.targets.map(async (one) => {
        const taken: Taken = await one.test(told);
        const { name, type } = one.config;
        return { name, type, ...(taken.ok ? {} : { why: taken.why }) };
      }),
    );
  }

  /** Notices that were not sent are found again by the next process. */
  stop(): void {
    clearInterval(this.timer);
    for (const one of this.targets) one.stop();
  }

  private look(): void {
    const told = this.board.due(Date.now());
    if (told.length === 0) return;
    const messages = this.targets.filter((one) => one instanceof MessageTarget);
    for (const one of messages) one.add(told);
  }

  private targetHost(): TargetHost {
    const { host } = this;
    return {
      log: (level, message) => host.log(level, message),
      find: () => host.find(),
      delivered: () => this.keep(),
    };
  }

  /** Called when one target has a notice: the next process then does not send it again, however this one ends. */
  private keep(): void {
    const why = this.file === undefined ? undefined : writeBoard(this.file, this.board.kept);
    if (why !== undefined)
      this.host.log("warn", `sent messages cannot be recorded, and may be repeated after a crash: ${why}`);
  }
}

const LOOK_MS = 5_000;

const TEST: Notice = {
  key: "test/test",
  what: "This is a test of notifications: nothing happened",
  fix: "Nothing has to be done.",
};

/**
 * Reads the notices that were sent, so that a process does not send them again after a crash.
 *
 * @returns undefined if there is no such file, or none that can be read
 */
function readBoard(file: string): unknown {
  try {
    return JSON.parse(readTrustedSync(file).toString("utf8"));
  } catch {
    return undefined;
  }
}

/** @returns why it could not be written, if so */
function writeBoard(file: string, board: KeptBoard): string | undefined {
  try {
    replaceSoon(file, JSON.stringify(board));
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}
