import { connect } from "node:net";
import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import { Violation } from "../../testkit/messages.js";
import { Accepted } from "../../testkit/peers.js";
import { connectTls } from "../../testkit/tlsClient.js";
import { closeBy } from "./client.js";
import type { Part, Turn } from "./http1Input.js";
import { Outcome } from "./responses.js";
import type { ClientScript, ExchangeScript } from "./timeline.js";

export interface Ports {
  readonly plainPort: number;
  readonly tlsPort: number;
}

/** As long as a timer can. */
const FOR_EVER_MS = 2 ** 31 - 1;
/** A moment in which the proxy reads what was sent. */
const MOMENT_MS = 1;
/**
 * So long the proxy waits for responses to a client that has ended its side, which may be gone: a second, by a clock that
 * may be a quarter of a second behind when the wait begins.
 */
const HALF_CLOSED_MS = 750;
/** So many parts are written a moment apart; what follows is as many pieces of a body. */
const MOMENTS_MAX = 40;
/** Byte by byte only so far: what follows is a body. */
const SINGLE_BYTES_MAX = 250;

/** One connection of a client, which sends its turns and reads what comes. */
export abstract class Client extends Accepted {
  readonly violations: string[] = [];
  readonly outcomes: Outcome[];
  /** Exchanges whose whole request was handed to the kernel. */
  readonly whole = new Set<number>();
  /** It ended its side before it had all responses: over TLS, or the upstream took longer than the proxy then waits. */
  forsaken = false;
  /** Over HTTP/2: exchanges that the proxy reset for what the client did, and whether it was told to calm down. */
  readonly stopped = new Set<number>();
  calmed = false;
  lastedMs = 0;
  /** Resolves when it sends nothing more, and waits for nothing that the proxy does by itself. */
  readonly quiet: Promise<void>;
  private becomeQuiet: () => void = () => undefined;
  private leftAt = Infinity;
  /** A busy machine takes long over a client that sends a thousand bytes one by one, but not between two of them. */
  private hangs: NodeJS.Timeout | undefined;
  private sent = 0;
  /** The acknowledgements of the proxy's frames must not come in the midst of one of ours: it waits for the end of the turn. */
  private controls: Buffer[] | undefined;
  private readonly sentMax: number;

  /** @param transport the connection below TLS, which alone can be reset */
  constructor(
    protected readonly script: ClientScript,
    private readonly turns: readonly Turn[],
    { plainPort, tlsPort }: Ports,
    private readonly transport = connect({
      port: script.protocol === "http" ? plainPort : tlsPort,
      host: "127.0.0.1",
      noDelay: true,
    }),
  ) {
    const secured = { port: tlsPort, over: transport, resumes: true } as const;
    const protocol = script.protocol === "h2" ? "h2" : "http/1.1";
    super(script.protocol === "http" ? transport : connectTls({ ...secured, protocol }));
    this.outcomes = script.exchanges.map(() => new Outcome());
    this.quiet = new Promise((resolve) => (this.becomeQuiet = resolve));
    const total = turns.reduce((sum, { parts }) => parts.reduce((n, { bytes }) => n + bytes.length, sum), 0);
    const { abort } = script;
    this.sentMax =
      abort !== undefined && "sent" in abort.after ? Math.floor(abort.after.sent * total) : Infinity;
  }

  /**
   * Plays the whole script; resolves when the connection is closed.
   * @param patienceMs what neither sends nor receives a byte for so long hangs
   */
  async play(patienceMs: number): Promise<void> {
    const begun = performance.now();
    this.hangs = globalThis.setTimeout(() => {
      this.violations.push(`hangs: ${this.describe()}`);
      this.socket.destroy();
    }, patienceMs);
    for (const turn of this.turns) if (!(await this.playTurn(turn))) break;
    if (this.leavesUnfinished && !this.closed) {
      this.socket.end();
      this.leftAt = performance.now();
    }
    if (!this.script.exchanges.some(isTimedOut)) this.becomeQuiet();
    await this.comes(() => this.done);
    this.becomeQuiet();
    if (!this.closed) this.socket.end();
    await this.comes(() => false);
    // TLS 1.2: who gets a close_notify writes nothing more (RFC 5246, 7.2.1).
    const isCut = this.script.protocol === "https" && this.leftAt !== Infinity;
    this.lastedMs = performance.now() - begun;
    this.forsaken = isCut || performance.now() - this.leftAt >= HALF_CLOSED_MS;
    clearTimeout(this.hangs);
  }

  /** Whether all that will come has come. */
  protected abstract get done(): boolean;
  /** Whether a request is left without its end, so that only the client's end tells that none follows. */
  protected abstract get leavesUnfinished(): boolean;
  protected abstract take(bytes: Buffer): void;
  /** The connection ended, and nothing more is to be taken. */
  protected abstract finish(): void;
  /** Whether the response to an exchange has opened a tunnel. */
  protected abstract isTunnel(exchange: number): boolean;

  /** Whether the proxy said that it takes no such request any more. */
  abstract refuses(exchange: number): boolean;

  /** Sends what is not part of the script. */
  protected control(bytes: Buffer): void {
    if (this.controls !== undefined) this.controls.push(bytes);
    else this.write(bytes);
  }

  private write(bytes: Buffer): void {
    if (!this.closed && this.socket.writable) this.socket.write(bytes);
  }

  /** Whether a 100 or what opens a tunnel has come; undefined while neither it nor anything else has. */
  private opened(exchange: number, what: "continue" | "tunnel"): boolean | undefined {
    const { informational, status, end } = this.outcomes[exchange]!;
    if (what === "continue" ? informational.includes(100) : this.isTunnel(exchange)) return true;
    return status !== undefined || end !== "none" ? false : undefined;
  }

  private describe(): string {
    return this.outcomes.map(({ status, end }, e) => `${e}: ${status ?? "no response"}, ${end}`).join("; ");
  }

  /** @returns false if the rest is not sent either */
  private async playTurn({ after, parts }: Turn): Promise<boolean> {
    if (after !== undefined) {
      const { exchange, what } = after;
      const responded = (): boolean => this.outcomes[exchange]!.end !== "none";
      if (what === "response") await this.comes(responded);
      else {
        await this.comes(() => this.opened(exchange, what) !== undefined);
        // HTTP/2 goes on with its other streams.
        if (this.opened(exchange, what) !== true) return this.script.protocol === "h2";
      }
    }
    if (this.closed) return false;
    this.controls = [];
    const goesOn = await this.writeParts(parts);
    const controls = Buffer.concat(this.controls);
    this.controls = undefined;
    if (goesOn && controls.length > 0) this.write(controls);
    return goesOn;
  }

  /** @returns false if the client left, or cannot go on */
  private async writeParts(parts: readonly Part[]): Promise<boolean> {
    let end = this.sent;
    const wholes = parts.flatMap(({ exchange, bytes, wholeWith }) => {
      const at = end;
      end += bytes.length;
      return wholeWith === undefined ? [] : [{ exchange, at: at + wholeWith }];
    });
    const { abort } = this.script;
    for (const { bytes, apart } of this.pieces(parts.map((part) => part.bytes))) {
      const left = this.sentMax - this.sent;
      this.write(bytes.subarray(0, Math.max(0, left)));
      this.hangs?.refresh();
      this.sent += Math.min(bytes.length, left);
      for (const { exchange, at } of wholes) if (at <= this.sent) this.whole.add(exchange);
      if (left <= bytes.length && abort !== undefined) {
        closeBy(this.socket, abort.how, this.transport);
        return false;
      }
      if (apart === "moment") await sleep(MOMENT_MS);
      else if (apart === "turn") await setImmediate();
      if (this.closed) return false;
    }
    return true;
  }

  private *pieces(parts: readonly Buffer[]): Generator<{ bytes: Buffer; apart: "no" | "turn" | "moment" }> {
    const { splits } = this.script;
    if (splits.kind === "parts") {
      for (const [i, bytes] of parts.entries())
        yield { bytes, apart: splits.apart && i < MOMENTS_MAX ? "moment" : "no" };
      return;
    }
    const all = Buffer.concat(parts);
    const borders = this.borders(all.length);
    for (let i = 0, from = 0; i <= borders.length; i++) {
      const to = borders[i] ?? all.length;
      if (to > from)
        yield { bytes: all.subarray(from, to), apart: splits.kind === "bytes" ? "turn" : "moment" };
      from = Math.max(from, to);
    }
  }

  private borders(length: number): number[] {
    const { splits } = this.script;
    if (splits.kind === "bytes")
      return Array.from({ length: Math.min(length, SINGLE_BYTES_MAX) }, (_, i) => i + 1);
    if (splits.kind === "border") return [splits.at - this.sent].filter((at) => at > 0 && at < length);
    if (splits.kind === "some") return splits.at.map((at) => Math.floor(at * length)).sort((a, b) => a - b);
    return [];
  }

  protected override read(bytes: Buffer): void {
    this.hangs?.refresh();
    this.guard(() => this.take(bytes));
    const { abort } = this.script;
    if (abort !== undefined && "received" in abort.after && this.received.length >= abort.after.received)
      closeBy(this.socket, abort.how, this.transport);
  }

  protected override left(): void {
    this.guard(() => this.finish());
  }

  private guard(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.violations.push(`client: ${error instanceof Violation ? error.message : String(error)}`);
      this.socket.destroy();
    }
  }

  /** What does not come ends the connection ({@link play}). */
  private comes(holds: () => boolean): Promise<unknown> {
    return this.until(() => this.closed || holds(), FOR_EVER_MS);
  }
}

/** Whether only the proxy's patience ends the request. */
export const isTimedOut = ({ to, body }: ExchangeScript): boolean =>
  to.bodyTimeoutMs !== undefined && body?.end === "never";
