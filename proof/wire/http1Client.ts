import { Violation } from "../../testkit/messages.js";
import { isUpgrade, type ClientScript } from "./timeline.js";
import { Client, isTimedOut, type Ports } from "./scriptedClient.js";
import type { Turn } from "./http1Input.js";
import { ResponseReader } from "./responses.js";

/** A client over HTTP/1.1, which reads its responses strictly. */
export class Http1Client extends Client {
  private readonly responses: ResponseReader;

  constructor(script: ClientScript, turns: readonly Turn[], ports: Ports) {
    super(script, turns, ports);
    const methods = script.exchanges.map(({ method }) => method);
    this.responses = new ResponseReader(methods, "strict", this.outcomes);
  }

  protected override get done(): boolean {
    const { exchanges } = this.script;
    const { at, tunnel } = this.responses;
    if (!tunnel) return at >= exchanges.length;
    const { down, endedBy } = exchanges[at]!.tunnel;
    return endedBy === "client" && this.outcomes[at]!.body.length >= down;
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

  protected override take(bytes: Buffer): void {
    this.responses.reader.feed(bytes);
    const exchange = this.script.exchanges[this.responses.at];
    if (this.responses.tunnel && (exchange === undefined || !isUpgrade(this.script, exchange)))
      throw new Violation("101 unasked");
  }

  protected override finish(): void {
    this.responses.finish();
  }

  protected override isTunnel(): boolean {
    return this.responses.tunnel;
  }
}
