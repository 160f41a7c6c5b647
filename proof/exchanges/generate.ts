import { randomFrom } from "../kit/randomFrom.js";
import {
  type Abort,
  type AnswerFlaw,
  type AnswerScript,
  type BodyScript,
  type Case,
  type ClientScript,
  type ExchangeScript,
  HTTP2_PIECE_BYTES_MAX,
  LIMITED_BYTES,
  type Protocol,
  type Splits,
  type TunnelScript,
} from "./case.js";
import { http2Turns } from "./http2Input.js";
import { http1Turns, LANE_MIN } from "./input.js";

/** Of so many cases, the first are one small case that is split at another border in each, as many as it has. */
const BLOCK = 512;
const SWEPT_PROTOCOLS = ["http", "h2", "https"] as const;
/** Of a body or tunnel of that case. */
const SMALL_BYTES = 40;
/** Clients of HTTP/2 send no more before they are given more window (RFC 9113, 6.9.2). */
const HTTP2_BYTES_MAX = 60_000;

/**
 * Lengths at which buffers, windows, frames, TLS records and gathered writes (`upstream/requestWriter.ts`) end: the
 * bytes and pieces beside them are where a border is missed.
 */
const EDGES = [0, 1, 2, 15, 16, 17, 255, 256, 1_023, 1_024, 2_048, 4_096, 16_383, 16_384, 16_385, 20_000];
const LARGE = [65_535, 65_536, 65_537, 100_000, 131_072];
/** Numbers of small pieces that go out together. */
const MANY = [339, 340, 340, 341, 680, 1_024];

/** The case of a number: the same from the same seed, whatever was made before. */
export function caseAt(seed: number, index: number): Case {
  const block = Math.floor(index / BLOCK);
  const maker = new Maker(new Chance(mixed(seed, ~block)));
  const [swept, ...others] = maker.smallClients(SWEPT_PROTOCOLS[block % SWEPT_PROTOCOLS.length]!);
  const at = bordersOf(index, swept)[index % BLOCK];
  if (at === undefined) return { ...new Maker(new Chance(mixed(seed, index))).case(), index };
  return { index, together: false, clients: [{ ...swept, splits: { kind: "border", at } }, ...others] };
}

/**
 * Where the input of a case's first client is split: at every byte; of HTTP/2 at every frame, and the bytes around it.
 */
export function bordersOf(index: number, client: ClientScript): number[] {
  const turns = (client.protocol === "h2" ? http2Turns : http1Turns)(index, 0, client, LANE_MIN);
  const borders = new Set<number>();
  let from = 0;
  for (const { bytes } of turns.flatMap(({ parts }) => parts)) {
    const to = from + bytes.length;
    if (client.protocol !== "h2") for (let at = from; at < to; at++) borders.add(at);
    else for (const at of BESIDE_FRAME) if (at < bytes.length) borders.add(from + at);
    if (client.protocol === "h2") borders.add(to - 1);
    from = to;
  }
  borders.delete(0);
  return [...borders].sort((a, b) => a - b);
}

/** Before a frame, within its head (RFC 9113, 4.1), after that, and in the payload's first bytes. */
const BESIDE_FRAME = [0, 1, 3, 8, 9, 10];

/** Neighbouring numbers and seeds share nothing. */
const mixed = (seed: number, index: number): number =>
  Math.imul(Math.imul(seed ^ 0x5bd1e995, 0x9e3779b1) ^ index, 0x85ebca6b) ^ (index >>> 13);

/** Choices from a seed. */
class Chance {
  private readonly next: () => number;

  constructor(seed: number) {
    this.next = randomFrom(seed);
  }

  upTo(max: number): number {
    return Math.floor(this.next() * (max + 1));
  }

  is(probability: number): boolean {
    return this.next() < probability;
  }

  of<T>(...values: readonly T[]): T {
    return values[this.upTo(values.length - 1)]!;
  }

  part(): number {
    return this.next();
  }
}

class Maker {
  constructor(private readonly chance: Chance) {}

  case(): Omit<Case, "index"> {
    const { chance } = this;
    const count = chance.of(1, 2, 2, 3);
    const clients = Array.from({ length: count }, () => this.client(chance.of("http", "https", "h2")));
    // What is done to a connection that is used again differs from what is done to a new one.
    if (chance.is(0.4)) return { together: false, clients: [this.warmingClient(), ...clients] };
    return { together: chance.is(0.3), clients };
  }

  /** Leaves the upstream a connection that waits to be used again. */
  private warmingClient(): ClientScript {
    const { answer, ...exchange } = this.exchange("http", false, true);
    const kept = {
      ...answer,
      status: 200,
      framing: "length",
      flaw: "none",
      then: "keep",
      when: "complete",
    } as const;
    const plain = { method: "GET", limited: false, upgrade: false, expect: "none", body: undefined } as const;
    const exchanges = [{ ...exchange, ...plain, answer: { ...kept, informational: [], apart: false } }];
    return {
      protocol: "http",
      pipelined: false,
      splits: { kind: "joined" },
      abort: undefined,
      windowBytes: 65_535,
      exchanges,
    };
  }

  /** One client with one or two small exchanges, and another that would get what the first left behind. */
  smallClients(protocol: Protocol): [ClientScript, ClientScript] {
    const small = (client: ClientScript): ClientScript => ({
      ...client,
      abort: undefined,
      exchanges: client.exchanges.slice(0, 2).map((exchange) => ({
        ...exchange,
        tunnel: { ...exchange.tunnel, up: Math.min(exchange.tunnel.up, SMALL_BYTES) },
        body: exchange.body === undefined ? undefined : smaller(exchange.body),
      })),
    });
    return [{ ...small(this.client(protocol)), pipelined: true }, small(this.client("http"))];
  }

  private client(protocol: Protocol): ClientScript {
    const { chance } = this;
    const abort = chance.is(0.12) ? this.abort() : undefined;
    const count = chance.of(1, 1, 2, 2, 3, 4);
    const exchanges: ExchangeScript[] = [];
    let bytes = 0;
    for (let e = 0; e < count; e++) {
      const exchange = this.exchange(protocol, e === count - 1, abort !== undefined);
      bytes += sentBytes(exchange);
      if (protocol === "h2" && bytes > HTTP2_BYTES_MAX && e > 0) break;
      exchanges.push(exchange);
    }
    return {
      protocol,
      pipelined: chance.is(0.5),
      splits: this.splits(),
      abort,
      windowBytes: chance.of(65_535, 65_535, smallWindow(exchanges), 1_000_000),
      exchanges,
    };
  }

  private splits(): Splits {
    const { chance } = this;
    const kind = chance.of("joined", "joined", "parts", "parts", "bytes", "some", "some");
    if (kind === "joined" || kind === "bytes") return { kind };
    if (kind === "parts") return { kind, apart: chance.is(0.3) };
    return { kind, at: Array.from({ length: 1 + chance.upTo(3) }, () => chance.part()) };
  }

  private abort(): Abort {
    const { chance } = this;
    const after = chance.is(0.6)
      ? { sent: chance.part() }
      : { received: 1 + chance.upTo(chance.of(50, 500, 5_000)) };
    return { after, how: chance.of("end", "reset", "destroy") };
  }

  /** @param last only the last request of a connection over HTTP/1.1 may be broken: nothing after it is read */
  private exchange(protocol: Protocol, last: boolean, aborted: boolean): ExchangeScript {
    const { chance } = this;
    const mayBreak = (last || protocol === "h2") && !aborted;
    const upgrade = chance.is(0.15) && (last || protocol === "h2");
    const method =
      upgrade && (protocol === "h2" || chance.is(0.9))
        ? "GET"
        : chance.of("GET", "GET", "POST", "POST", "PUT", "HEAD", "DELETE", "OPTIONS");
    const limited = chance.is(0.2);
    const wants = upgrade
      ? chance.is(0.4)
      : method === "GET" || method === "HEAD"
        ? chance.is(0.15)
        : chance.is(0.9);
    const given = wants
      ? this.body(protocol === "h2", protocol === "h2" && upgrade, limited, mayBreak)
      : undefined;
    // Behind a request for a tunnel what is too much is the tunnel's.
    const body = upgrade && given?.bytes === 0 ? { ...given, off: 0 } : given;
    const tunnel = this.tunnel();
    return {
      method,
      limited,
      upgrade,
      expect: body !== undefined && chance.is(0.12) ? chance.of("sends", "waits") : "none",
      body,
      tunnel,
      answer: this.answer(upgrade && (body === undefined || body.bytes === 0), method === "HEAD"),
    };
  }

  private body(http2: boolean, connects: boolean, limited: boolean, mayBreak: boolean): BodyScript {
    const { chance } = this;
    // Without a length, DATA of an extended CONNECT is its tunnel's.
    const framing: BodyScript["framing"] = connects ? "length" : chance.of("length", "chunked");
    const breaks = mayBreak && chance.is(0.3);
    const bytes = limited ? chance.upTo(LIMITED_BYTES * 2) : this.length(!http2);
    const broken = breaks ? this.breakage(http2, framing, bytes) : {};
    const whole = {
      framing,
      bytes,
      off: 0,
      joined: chance.is(0.7),
      piece: Math.max(
        1,
        limited ? chance.upTo(60) : chance.of(bytes, Math.ceil(bytes / 2), 1 + chance.upTo(bytes), 16_384),
      ),
      padding: http2 && chance.is(0.2) ? 1 + chance.upTo(chance.of(3, 100)) : 0,
      end: chance.of("last", "last", "empty", "trailers"),
      flaw: "none",
      ...broken,
    } as const;
    // Over HTTP/2 many bodies of small frames, of exactly as many as go out together.
    const most = http2 ? HTTP2_PIECE_BYTES_MAX : Infinity;
    if (!limited && chance.is(http2 ? 0.15 : 0.08)) {
      const many = chance.of(...MANY);
      const tooLong = mayBreak && framing === "length" && chance.is(0.5);
      const off = tooLong ? chance.of(1, 2, 60, 200) : whole.off < 0 ? -1 - chance.upTo(many - 1) : whole.off;
      return { ...whole, bytes: many, piece: 1, padding: 0, off };
    }
    return { ...whole, piece: Math.min(most, Math.max(whole.piece, Math.ceil(bytes / 400))) };
  }

  private breakage(http2: boolean, framing: BodyScript["framing"], bytes: number): Partial<BodyScript> {
    const { chance } = this;
    const short = { off: -1 - chance.upTo(Math.max(0, bytes - 1)) };
    if (framing === "length")
      return chance.is(0.5) || bytes === 0
        ? { off: chance.of(1, 2, 60, 200) }
        : http2
          ? { ...short, end: chance.of("last", "empty", "trailers", "never", "reset") }
          : short;
    if (http2) return { end: chance.of("never", "reset") };
    return chance.is(0.4) ? { end: "never" } : { flaw: chance.of("chunkSize", "chunkEnd") };
  }

  private tunnel(): TunnelScript {
    const { chance } = this;
    const length = (): number => chance.of(0, 1, 5, 300, 20_000);
    return { up: length(), down: length(), early: chance.is(0.4), endedBy: chance.of("client", "upstream") };
  }

  private answer(tunnel: boolean, head: boolean): AnswerScript {
    const { chance } = this;
    const flaw: AnswerFlaw = chance.is(0.2)
      ? chance.of("short", "long", "chunkSize", "chunkEnd", "garbage", "silence", "switch")
      : "none";
    const framing = chance.of("length", "length", "chunked", "close");
    const status =
      tunnel && chance.is(0.5) ? 101 : chance.of(200, 200, 200, 200, 201, 204, 304, 401, 413, 500);
    const bytes = this.length(true);
    const answer: AnswerScript = {
      when: chance.of("complete", "complete", "complete", "head", "half"),
      informational: chance.is(0.1) ? chance.of<number[]>([100], [103], [100, 103]) : [],
      status,
      framing,
      bytes,
      piece: Math.max(1, Math.ceil(bytes / chance.of(1, 2, 5, 20))),
      apart: chance.is(0.15),
      flaw,
      then: chance.of("keep", "keep", "keep", "keep", "keep", "close", "close", "quit", "reset"),
    };
    // 101 to who asked for it is none.
    return settled(tunnel && flaw === "switch" ? { ...answer, flaw: "none" } : answer, head);
  }

  private length(large: boolean): number {
    const { chance } = this;
    if (large && chance.is(0.03)) return chance.of(...LARGE);
    return chance.is(0.3) ? chance.of(...EDGES) : chance.upTo(chance.of(20, 20, 300, 3_000));
  }
}

/** Flaws that a framing cannot have are none. */
function settled(answer: AnswerScript, head: boolean): AnswerScript {
  const { flaw, framing, bytes, status } = answer;
  const bodiless = head || status === 204 || status === 304 || status === 101;
  const inBody = flaw === "short" || flaw === "chunkSize" || flaw === "chunkEnd";
  const unchunked = framing !== "chunked" && flaw.startsWith("chunk");
  if (inBody && (bodiless || bytes < 2 || unchunked)) return { ...answer, flaw: "none" };
  // What is after an answer has to come in one read with it: later it would be the answer to the next request.
  if (flaw === "long")
    return framing === "close" || status === 101
      ? { ...answer, flaw: "none" }
      : { ...answer, bytes: Math.min(bytes, 4_096), apart: false };
  return answer;
}

const smaller = (body: BodyScript): BodyScript => {
  const bytes = Math.min(body.bytes, SMALL_BYTES);
  return {
    ...body,
    bytes,
    off: Math.max(-bytes, Math.min(body.off, 60)),
    piece: Math.max(Math.min(body.piece, 20), Math.ceil(bytes / 8)),
    padding: Math.min(body.padding, 3),
  };
};

/** Small, but no answer takes more than a few dozen updates of it. */
const smallWindow = (exchanges: readonly ExchangeScript[]): number =>
  Math.max(
    100,
    ...exchanges.map(({ answer, tunnel }) => Math.ceil(Math.max(answer.bytes, tunnel.down) / 30)),
  );

function sentBytes({ body, tunnel, upgrade }: ExchangeScript): number {
  if (body === undefined) return upgrade ? tunnel.up : 0;
  const frames = Math.ceil(body.bytes / body.piece) + 1;
  return body.bytes + Math.max(0, body.off) + frames * (body.padding + 1);
}
