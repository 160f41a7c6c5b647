import {
  type BodyKind,
  type Field,
  fieldValue,
  framed,
  framingOf,
  type Message,
  type MessageHead,
  MessageReader,
  type MessageSink,
  Violation,
} from "../../testkit/messages.js";

/** What a client got for one request. */
export class Outcome {
  /** Statuses of informational responses before the final one. */
  readonly informational: number[] = [];
  /** Whose they say to be. */
  readonly informationalIds: (string | undefined)[] = [];
  startLine = "";
  fields: readonly Field[] = [];
  /** What has no head ends with its connection. HTTP/2 frames it itself. */
  framing: Message["framing"] | "" = "close";
  /** Undefined without a head, or one of HTTP. */
  status: number | undefined;
  readonly pieces: Buffer[] = [];
  /** Complete as far as a client can see; `cut` where it can see that it is not. */
  end: "none" | "complete" | "cut" = "none";

  get body(): Buffer {
    return Buffer.concat(this.pieces);
  }

  /** One char a byte. */
  get text(): string {
    return this.body.toString("latin1");
  }

  get complete(): boolean {
    return this.end === "complete";
  }

  /** Whose response it says to be. */
  get id(): string | undefined {
    return fieldValue(this.fields, "x-id");
  }

  /** Where a redirect leads. */
  get location(): string | undefined {
    return fieldValue(this.fields, "location");
  }

  /** Whether it says that the connection closes. */
  get closes(): boolean {
    return /\bclose\b/i.test(fieldValue(this.fields, "connection") ?? "");
  }
}

const STATUS_LINE = {
  strict: /^HTTP\/1\.1 ([1-5]\d\d) [\t -~\x80-\xff]*$/,
  asItIs: /^HTTP\/1\.[01] (\d{3})/,
};

/** Reads what a client gets over HTTP/1.1: strictly, so that violations show, or as it is, for one proxy to be compared. */
export class ResponseReader implements MessageSink {
  /** Number of the response under way. */
  at = 0;
  /** The connection is a tunnel now. */
  tunnel = false;
  readonly reader: MessageReader;

  /**
   * @param methods of the requests in turn; GET for those after them
   * @param outcomes what is there is filled in; those behind it are kept to be judged
   */
  constructor(
    private readonly methods: readonly string[],
    private readonly rules: "strict" | "asItIs",
    readonly outcomes: Outcome[] = [],
  ) {
    this.reader = new MessageReader(this, rules);
  }

  /** The connection has ended. */
  finish(): void {
    const whole = this.reader.finish();
    const outcome = this.outcomes[this.at];
    if (outcome !== undefined && (this.tunnel || !whole)) outcome.end = this.tunnel ? "complete" : "cut";
  }

  head(head: MessageHead): BodyKind | "head" {
    const strict = this.rules === "strict";
    const found = STATUS_LINE[this.rules].exec(head.startLine);
    if (strict && found === null) throw new Violation(`status line ${JSON.stringify(head.startLine)}`);
    const status = found === null ? undefined : Number(found[1]);
    const outcome = this.outcome();
    // 101 is final: what follows is not an HTTP message any more.
    if (status !== undefined && status >= 100 && status < 200 && status !== 101) {
      outcome.informational.push(status);
      if (status !== 100) outcome.informationalIds.push(fieldValue(head.fields, "x-id"));
      return "head";
    }
    const method = this.methods[this.at] ?? "GET";
    const { framing, kind } = framed(head, { type: "response", method, ended: false });
    Object.assign(outcome, head, { status, framing });
    if (!strict) return kind;
    this.tunnel = status === 101;
    if (framingOf(head) !== undefined && status === 204) throw new Violation("204 with a length");
    return this.tunnel ? "raw" : kind;
  }

  body(bytes: Buffer): void {
    this.outcome().pieces.push(Buffer.from(bytes));
  }

  end(): void {
    this.outcome().end = "complete";
    this.at++;
  }

  outcome(): Outcome {
    return (this.outcomes[this.at] ??= new Outcome());
  }
}

/** What a client received, as it is. Bytes that are no response, or not yet, are the body of one without a head. */
export function receivedResponses(text: string, methods: readonly string[], ended: boolean): Outcome[] {
  const responses = new ResponseReader(methods, "asItIs");
  responses.reader.feed(Buffer.from(text, "latin1"));
  const { begun } = responses.reader;
  if (ended) responses.finish();
  if (begun.length > 0) responses.outcome().pieces.push(begun);
  return responses.outcomes;
}
