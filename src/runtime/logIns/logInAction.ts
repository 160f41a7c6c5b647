import type { LogInConfig, LogInRules, PasswordGuardConfig } from "../../model/serving.js";
import { respondFailure } from "../dispatch/errorPages.js";
import { type Exchange, headerValue, type RouteAction } from "../exchange/exchange.js";
import { clientKey } from "../rates/clientKey.js";
import { HeldBody } from "./heldBody.js";
import { hostNow } from "../rates/hostClock.js";
import { type GuardRefusal, LogInJudge, type LogInResult, type Tried } from "./judge.js";
import type { SecretHashes } from "./tried.js";

/** A guard in a worker: judges by what this worker saw, and what it heard from the others. */
export class WorkerGuard {
  readonly judge: LogInJudge;

  constructor(
    readonly name: string,
    readonly config: PasswordGuardConfig,
    readonly hashes: SecretHashes,
    /** Tells the other workers. */
    readonly tell: (result: LogInResult) => void,
    /** Counts a refusal. */
    readonly count: (reason: GuardRefusal["reason"]) => void,
  ) {
    this.judge = new LogInJudge(config);
  }
}

/** An attempt whose result is still to come. */
interface Attempt {
  readonly rule: LogInConfig;
  readonly tried: Tried;
}

/** The action of a route with log-ins: lets through what is none, or what the guard does not refuse. */
export class LogInAction implements RouteAction {
  constructor(
    private readonly inner: RouteAction,
    private readonly rules: LogInRules,
    private readonly guard: WorkerGuard,
  ) {}

  handle(exchange: Exchange): void {
    const rules = this.rules.of(exchange.request);
    if (rules.length === 0) return this.inner.handle(exchange);
    const [inHead, inBody] = (["authorization", "body"] as const).map((place) =>
      rules.find(({ secret }) => secret === place),
    );
    const { hashes } = this.guard;
    const tried = inHead && hashes.ofAuthorization(exchange.request);
    const attempts = tried === undefined ? [] : [{ rule: inHead!, tried }];
    if (attempts.some((one) => this.refuses(exchange, one))) return;
    // What follows CONNECT is a tunnel (RFC 8441), and ends with the exchange.
    if (inBody === undefined || exchange.request.method === "CONNECT") return this.pass(exchange, attempts);
    new HeldBody(exchange, (body) => {
      const { request } = exchange;
      const tried = body === undefined ? hashes.unknown() : hashes.ofBody(request, body, inBody);
      if (tried === undefined) return this.pass(exchange, attempts);
      const attempt = { rule: inBody, tried };
      if (!this.refuses(exchange, attempt)) this.pass(exchange, [...attempts, attempt]);
    }).begin();
  }

  private refuses(exchange: Exchange, { tried }: Attempt): boolean {
    const { judge, count, name } = this.guard;
    const refusal = judge.judge(this.addressOf(exchange), tried, hostNow());
    if (refusal === undefined) return false;
    const { reason, retryMs } = refusal;
    exchange.guardRefusal = { guard: name, reason };
    count(reason);
    const seconds = Math.max(1, Math.ceil(retryMs / 1_000));
    const what = `passwordGuard="${name} ${reason}": a new secret is not tried for ${seconds} s`;
    exchange.route?.errorLog.write("error", what, exchange);
    respondFailure(exchange, "http_request_denied", 429, { headers: ["Retry-After", String(seconds)] });
    return true;
  }

  /** Lets the request through, and looks at the head of the response. */
  private pass(exchange: Exchange, attempts: readonly Attempt[]): void {
    if (attempts.length > 0)
      watchHead(exchange, (status, location) => this.learn(exchange, attempts, status, location));
    this.inner.handle(exchange);
  }

  private learn(exchange: Exchange, attempts: readonly Attempt[], status: number, location?: string): void {
    const { judge, tell } = this.guard;
    const address = this.addressOf(exchange);
    for (const { rule, tried } of attempts) {
      const result = resultOf(rule, status, location);
      if (result === undefined) judge.undecided(address, tried);
      else {
        const seen = { address, ...tried, result };
        if (judge.learn(seen, hostNow())) tell(seen);
      }
    }
  }

  private addressOf({ client }: Exchange): string {
    return clientKey(client.address, this.guard.config.ipv6Prefix);
  }
}

function resultOf(
  { failed, failedLocation }: LogInConfig,
  status: number,
  location = "",
): LogInResult["result"] | undefined {
  const isRedirect = status >= 300 && status < 400;
  const isElsewhere =
    failedLocation !== undefined && isRedirect && !pathOf(location).endsWith(failedLocation);
  if (failed.includes(status) && !isElsewhere) return "wrong";
  return status < 400 ? "good" : undefined;
}

function pathOf(location: string): string {
  try {
    return new URL(location, "http://localhost").pathname.replace(/\/$/, "");
  } catch {
    return "";
  }
}

/** Only these exchanges have it, so that no other response pays for it. */
function watchHead(exchange: Exchange, seen: (status: number, location?: string) => void): void {
  const { sendHead, sendLines } = exchange;
  let isSeen = false;
  const once = (status: number, location?: string): void => {
    if (!isSeen) seen(status, location);
    isSeen = true;
  };
  exchange.sendHead = (status, reason, headers, bodyLength) => {
    once(status, headerValue(headers, "location"));
    sendHead.call(exchange, status, reason, headers, bodyLength);
  };
  if (sendLines === undefined) return;
  exchange.sendLines = (status, reason, lines, bodyLength) => {
    once(status, /^location:[ \t]*([^\r\n]*)/im.exec(lines)?.[1]);
    sendLines.call(exchange, status, reason, lines, bodyLength);
  };
}
