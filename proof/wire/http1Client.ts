import { isUpgrade, type ClientScript } from "./timeline.js";
import { Client, isTimedOut, noOutcome, type Outcome, type Ports } from "./scriptedClient.js";
import type { Turn } from "./http1Input.js";
import {
  type BodyKind,
  fieldValue,
  framingOf,
  type MessageHead,
  MessageReader,
  Violation,
} from "../../testkit/messages.js";

/** A client over HTTP/1.1, which reads its responses strictly. */
export class Http1Client extends Client {
  private readonly reader = new MessageReader(this);
  private at = 0;
  private tunnel = false;

  constructor(script: ClientScript, turns: readonly Turn[], ports: Ports) {
    super(script, turns, ports);
  }

  protected override get done(): boolean {
    const { exchanges } = this.script;
    if (this.tunnel) {
      const { down, endedBy } = exchanges[this.at]!.tunnel;
      const got = this.outcomes[this.at]!.body.reduce((sum, { length }) => sum + length, 0);
      return endedBy === "client" && got >= down;
    }
    return this.at >= exchanges.length;
  }

  protected override get leavesUnfinished(): boolean {
    const last = this.script.exchanges.at(-1);
    const body = last?.body;
    if (body === undefined || this.script.abort !== undefined || isTimedOut(last!)) return false;
    if (body.framing === "length") return body.off < 0;
    return body.end === "never" || body.end === "reset";
  }

  override refuses(): boolean {
    return false;
  }

  protected override read(bytes: Buffer): void {
    this.reader.feed(bytes);
  }

  protected override ended(): void {
    if (!this.reader.finish() && this.outcomes[this.at] !== undefined) this.outcomes[this.at]!.end = "cut";
    if (this.tunnel) this.outcomes[this.at]!.end = "complete";
  }

  protected override opened(exchange: number, what: "continue" | "tunnel"): boolean | undefined {
    const { informational, status, end } = this.outcomes[exchange]!;
    if (what === "continue" && informational.includes(100)) return true;
    if (what === "tunnel" && this.tunnel) return true;
    return status !== undefined || end !== "none" ? false : undefined;
  }

  head(head: MessageHead): BodyKind | "head" {
    const status = Number(/^HTTP\/1\.1 ([1-5]\d\d) [\t -~\x80-\xff]*$/.exec(head.startLine)?.[1] ?? NaN);
    if (Number.isNaN(status)) throw new Violation(`status line ${JSON.stringify(head.startLine)}`);
    const outcome = this.outcome();
    if (status < 200 && status !== 101) {
      outcome.informational.push(status);
      return "head";
    }
    outcome.status = status;
    outcome.id = fieldValue(head.fields, "x-id");
    outcome.closes = /\bclose\b/i.test(fieldValue(head.fields, "connection") ?? "");
    const exchange = this.script.exchanges[this.at];
    if (status === 101) {
      if (exchange === undefined || !isUpgrade(this.script, exchange)) throw new Violation("101 unasked");
      this.tunnel = true;
      return "raw";
    }
    const framing = framingOf(head);
    if (status === 204 && framing !== undefined) throw new Violation("204 with a length");
    if (exchange?.method === "HEAD" || status === 204 || status === 304) return 0;
    return framing ?? "close";
  }

  body(bytes: Buffer): void {
    this.outcome().body.push(Buffer.from(bytes));
  }

  end(): void {
    this.outcome().end = "complete";
    this.at++;
  }

  /** Answers after the last exchange are kept to be judged. */
  private outcome(): Outcome {
    return (this.outcomes[this.at] ??= noOutcome());
  }
}
