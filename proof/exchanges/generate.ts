import { Random, seedOf } from "../../testkit/random.js";
import {
  type Abort,
  type BodyScript,
  type Timeline,
  type ClientScript,
  type ExchangeScript,
  HOST,
  HTTP2_PIECE_BYTES_MAX,
  OWN_HOSTS,
  type Protocol,
  type Splits,
  STRANGE_HOSTS,
  type Target,
  type TunnelScript,
} from "../wire/timeline.js";
import { isGivenUp, isOverLimit, isSpent } from "../wire/faults.js";
import { bordersOf } from "./borders.js";
import { responseBy, FINE_BYTES, lengthBy } from "./generateResponse.js";
import { TARGETS } from "./targets.js";

/** Of so many cases, the first are one small case that is split at another border in each, as many as it has. */
const BLOCK = 512;
const SWEPT_PROTOCOLS = ["http", "h2", "https"] as const;
/** Of a body or tunnel of that case. */
const SMALL_BYTES = 40;
/** Clients of HTTP/2 send no more before they are given more window (RFC 9113, 6.9.2). */
const HTTP2_BYTES_MAX = 60_000;

/** Numbers of small pieces that go out together. */
const MANY = [339, 340, 340, 341, 680, 1_024];

/** Numbers of requests that wait for many turns; one read takes in all of them. */
const HASTY = [300, 600, 900];

/** The case of a number: the same from the same seed, whatever was made before. */
export function caseAt(seed: number, index: number): Timeline {
  const block = Math.floor(index / BLOCK);
  const maker = new Maker(new Random(seedOf(seed, ~block)));
  const [swept, ...others] = maker.smallClients(SWEPT_PROTOCOLS[block % SWEPT_PROTOCOLS.length]!);
  const at = bordersOf(index, swept)[index % BLOCK];
  if (at === undefined) return { ...new Maker(new Random(seedOf(seed, index))).case(), index };
  const clients = [{ ...swept, splits: { kind: "border", at } } as const, ...others];
  return { index, together: false, clients };
}

class Maker {
  constructor(private readonly chance: Random) {}

  case(): Omit<Timeline, "index"> {
    const { chance } = this;
    if (chance.is(0.1)) return { together: true, clients: this.waitingClients() };
    if (chance.is(0.02))
      return { together: chance.is(0.5), clients: [this.hastyClient(), this.client("http")] };
    if (chance.is(0.02)) return { together: true, clients: [this.quittingClient(), this.client("http")] };
    const count = chance.of(1, 2, 2, 3);
    const clients = Array.from({ length: count }, () => this.client(chance.of("http", "https", "h2")));
    // What is done to a connection that is used again differs from what is done to a new one.
    if (chance.is(0.4)) return { together: false, clients: [this.warmingClient(), ...clients] };
    return { together: chance.is(0.3), clients };
  }

  /** Its response is not over before everybody has done what they will. */
  private runningClient(protocol: Protocol): ClientScript {
    const warming = this.warmingClient();
    const [exchange] = warming.exchanges;
    const bytes = 2 + lengthBy(this.chance, true);
    const held = this.chance.of<"head" | "half">("head", "half", "half");
    const response = {
      ...exchange!.response,
      held,
      bytes,
      piece: Math.ceil(bytes / this.chance.of(1, 2, 20)),
    };
    return { ...warming, protocol, exchanges: [{ ...exchange!, response }] };
  }

  /** The first holds the only connection to the upstream; others wait for it, until they are served or refused. */
  private waitingClients(): ClientScript[] {
    const { chance } = this;
    const first = this.runningClient(chance.of("http", "https", "h2"));
    const holding = { ...first, exchanges: first.exchanges.map((e) => ({ ...e, to: TARGETS.narrow })) };
    const count = chance.of(1, 1, 2, 3);
    const to = (): Target => TARGETS[chance.of("narrow", "tight", "tight")];
    return [
      holding,
      ...Array.from({ length: count }, () => this.client(chance.of("http", "https", "h2"), to())),
    ];
  }

  /** Leaves the upstream a connection that waits to be used again. */
  private warmingClient(): ClientScript {
    const { response, tunnel } = this.exchange("http", false, true);
    const kept = {
      ...response,
      ...({ status: 200, flaw: "none", then: "keep", when: "complete", held: "no" } as const),
      ...({ informational: [], apart: false, framing: "length" } as const),
    };
    const called = { method: "GET", to: this.kept(), ...PLAINLY_CALLED } as const;
    const plain = { ...called, upgrade: false, expect: "none" } as const;
    return {
      protocol: "http",
      pipelined: false,
      splits: { kind: "joined" },
      abort: undefined,
      windowBytes: 65_535,
      stays: false,
      exchanges: [{ ...plain, body: undefined, tunnel, response: kept }],
    };
  }

  /**
   * Sends more requests at once than are taken in a few turns, and often leaves before the last one: then nothing of what
   * waits may begin.
   */
  private hastyClient(): ClientScript {
    const { chance } = this;
    const { exchanges, ...warming } = this.warmingClient();
    const protocol = chance.of("http", "https", "h2");
    const leaves = chance.is(0.8);
    const response = { ...exchanges[0]!.response, bytes: chance.upTo(300), piece: 300 };
    // Only what the proxy responds to at once fills a turn over HTTP/1.1.
    const own = chance.of(0, 0.9, 1, 1, 1);
    const count = own < 1 ? chance.of(30, 60, 90) : chance.of(...(protocol === "h2" ? [90, 160] : HASTY));
    // Without its response: the client has left before that.
    const forever = leaves && own === 1;
    const all = Array.from({ length: count }, (_, i): ExchangeScript => {
      const isLast = i === count - 1;
      const to = !isLast && chance.is(own) ? TARGETS[chance.of("fixed", "fixed", "elsewhere")] : this.kept();
      return { ...exchanges[0]!, to, response: { ...response, held: isLast && forever ? "forever" : "no" } };
    });
    // At the first response, while most requests wait; or anywhere.
    const first = chance.is(forever ? 0.8 : 0.3);
    const after = first
      ? { received: 1 + chance.upTo(100) }
      : chance.is(0.5)
        ? { sent: chance.part() }
        : { received: 1 + chance.upTo(10_000) };
    return {
      ...warming,
      protocol,
      pipelined: true,
      abort: leaves ? { after, how: chance.of("reset", "reset", "all") } : undefined,
      exchanges: all,
    };
  }

  /** Gives up many requests of one kind, and stays until the proxy has stopped them. */
  private quittingClient(): ClientScript {
    const { chance } = this;
    const { exchanges, ...warming } = this.warmingClient();
    const client = { ...warming, protocol: "h2", pipelined: chance.is(0.5), stays: true, exchanges } as const;
    const end = chance.of<BodyScript["end"]>("never", "never", "reset", "last");
    for (;;) {
      const given = this.exchange("h2", true, false, TARGETS.limited);
      const { upgrade, expect, body } = given;
      const isStopped = isSpent(client, given) && (end !== "never" || isOverLimit(given));
      if (upgrade || expect !== "none" || body?.end !== end || !isStopped) continue;
      const response = { ...exchanges[0]!.response, when: given.response.when };
      return {
        ...client,
        exchanges: Array.from({ length: 60 + chance.upTo(60) }, () => ({ ...given, response })),
      };
    }
  }

  /** One client with one or two small exchanges, and another that would get what the first left behind. */
  smallClients(protocol: Protocol): [ClientScript, ClientScript] {
    const small = (client: ClientScript): ClientScript => ({
      ...client,
      abort: undefined,
      exchanges: client.exchanges.slice(0, 2).map((exchange) => ({
        ...unheld(exchange),
        ...PLAINLY_CALLED,
        to: exchange.to.responder === "lane" ? exchange.to : TARGETS.plain,
        tunnel: { ...exchange.tunnel, up: Math.min(exchange.tunnel.up, SMALL_BYTES) },
        body: exchange.body === undefined ? undefined : smaller(exchange.body),
      })),
    });
    return [{ ...small(this.client(protocol)), pipelined: true }, small(this.client("http"))];
  }

  /** @param to the route of all its requests; default: any */
  private client(protocol: Protocol, to?: Target): ClientScript {
    const { chance } = this;
    const abort = chance.is(0.12) ? this.abort() : undefined;
    const count = chance.of(1, 1, 2, 2, 3, 4);
    const exchanges: ExchangeScript[] = [];
    let bytes = 0;
    for (let e = 0; e < count; e++) {
      const exchange = this.exchange(protocol, e === count - 1, abort !== undefined, to);
      bytes += sentBytes(exchange);
      if (protocol === "h2" && bytes > HTTP2_BYTES_MAX && e > 0) break;
      exchanges.push(exchange);
    }
    const client = {
      protocol,
      pipelined: chance.is(0.5),
      splits: this.splits(),
      abort,
      windowBytes: chance.of(65_535, 65_535, smallWindow(exchanges), 1_000_000),
      stays: false,
      exchanges,
    };
    return { ...client, exchanges: exchanges.map((exchange) => this.given(client, exchange)) };
  }

  /** Who is sure to be refused, or to leave, may never get a response: nothing else ends what the upstream has begun. */
  private given(client: ClientScript, exchange: ExchangeScript): ExchangeScript {
    return isGivenUp(client, exchange) && this.chance.is(0.35)
      ? { ...exchange, response: { ...exchange.response, held: "forever" } }
      : exchange;
  }

  private target(): Target {
    const { chance } = this;
    if (chance.is(0.6)) return this.kept();
    const own = ["large", "small", "fixed", "elsewhere", "status"] as const;
    return TARGETS[chance.of("limited", "limited", "limited", "timed", "narrow", "tight", "deaf", ...own)];
  }

  /** A route whose upstream's connections are used again without limits. */
  private kept(): Target {
    return TARGETS[this.chance.of("plain", "plain", "secure", "unix")];
  }

  private called(protocol: Protocol): Pick<ExchangeScript, "host" | "absolute"> {
    const { chance } = this;
    const host = chance.is(0.7)
      ? HOST
      : chance.is(0.5)
        ? chance.of(...OWN_HOSTS)
        : chance.of(...STRANGE_HOSTS);
    return { host, absolute: protocol !== "h2" && chance.is(0.1) };
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
    return { after, how: chance.of("half", "reset", "all") };
  }

  /** @param last only the last request of a connection over HTTP/1.1 may be broken: nothing after it is read */
  private exchange(protocol: Protocol, last: boolean, aborted: boolean, route?: Target): ExchangeScript {
    const { chance } = this;
    const to = route ?? this.target();
    const isFile = to.responder === "file";
    const mayBreak = (last || protocol === "h2") && !aborted;
    const upgrade = chance.is(0.15) && (last || protocol === "h2");
    const method =
      upgrade && (protocol === "h2" || chance.is(0.9))
        ? "GET"
        : isFile && chance.is(0.8)
          ? "GET"
          : chance.of("GET", "GET", "POST", "POST", "PUT", "HEAD", "DELETE", "OPTIONS");
    const wants = upgrade
      ? chance.is(0.4)
      : method === "GET" || method === "HEAD"
        ? chance.is(isFile ? 0.4 : 0.15)
        : chance.is(0.9);
    const given = wants
      ? this.body(protocol === "h2", protocol === "h2" && upgrade, to, mayBreak)
      : undefined;
    // Behind a request for a tunnel what is too much is the tunnel's.
    const body = upgrade && given?.bytes === 0 ? { ...given, off: 0 } : given;
    const tunnel = this.tunnel();
    return {
      method,
      to,
      ...this.called(protocol),
      upgrade,
      expect: body !== undefined && chance.is(0.12) ? chance.of("sends", "waits") : "none",
      body,
      tunnel,
      response: responseBy(
        chance,
        upgrade && (body === undefined || body.bytes === 0),
        method === "HEAD",
        to.carrier !== "unix",
      ),
    };
  }

  private body(http2: boolean, connects: boolean, to: Target, mayBreak: boolean): BodyScript {
    const { chance } = this;
    const { bodyBytesMax, bodyTimeoutMs } = to;
    const limited = bodyBytesMax !== undefined;
    // Without a length, DATA of an extended CONNECT is its tunnel's.
    const framing: BodyScript["framing"] = connects ? "length" : chance.of("length", "chunked");
    const breaks = mayBreak && chance.is(to.responder === "file" ? 0.6 : 0.3);
    const bytes = limited ? chance.upTo(bodyBytesMax * 2) : lengthBy(chance, !http2);
    const silent = mayBreak && bodyTimeoutMs !== undefined && chance.is(0.4);
    const broken = silent ? SILENT : breaks ? this.breakage(http2, framing, bytes) : {};
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
    const most = http2 ? HTTP2_PIECE_BYTES_MAX : Infinity;
    if (silent)
      return chance.is(0.5)
        ? { ...whole, framing: "length", bytes: 0, piece: 1 }
        : { ...whole, piece: Math.min(most, whole.piece) };
    if (!http2 && !limited && chance.is(0.01))
      return { ...whole, framing: "chunked", bytes: FINE_BYTES, piece: 1, off: 0, flaw: "none", end: "last" };
    // Over HTTP/2 many bodies of small frames, of exactly as many as go out together.
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
}

const PLAINLY_CALLED = { host: HOST, absolute: false } as const;

/** The rest of the body never comes, and the connection stays. */
const SILENT = { end: "never", off: 0, flaw: "none" } as const;

const unheld = (exchange: ExchangeScript): ExchangeScript => ({
  ...exchange,
  response: { ...exchange.response, held: "no" },
});

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

/** Small, but no response takes more than a few dozen updates of it. */
const smallWindow = (exchanges: readonly ExchangeScript[]): number =>
  Math.max(
    100,
    ...exchanges.map(({ response, tunnel, to }) =>
      Math.ceil(Math.max(response.bytes, tunnel.down, to.own?.body?.length ?? 0) / 30),
    ),
  );

function sentBytes({ body, tunnel, upgrade }: ExchangeScript): number {
  if (body === undefined) return upgrade ? tunnel.up : 0;
  const frames = Math.ceil(body.bytes / body.piece) + 1;
  return body.bytes + Math.max(0, body.off) + frames * (body.padding + 1);
}
