import {
  type AccessRefusal,
  type AccessUsers,
  type ErrorToken,
  basicCredentials,
  bothUsers,
  type BasicCredentials,
  verifiedUser,
  type PolicyJudge,
  type RouteGuard,
  refusalText,
} from "../../model/serving.js";
import { type ErrorOptions, respondFailure } from "./errorPages.js";
import {
  type ErrorLevel,
  type Exchange,
  type ExchangeHolder,
  type HeaderList,
  headerValue,
} from "../exchange/exchange.js";
import { guarded, type Guarded } from "../sockets/guarded.js";
import { Passwords, type PasswordWaiter } from "./passwords.js";

/** What a portal said about a request. */
export interface PortalOutcomes {
  /** It may come in, as far as this portal decides. */
  admitted(): void;
  /** The portal refused it: its response is for the client. */
  refused(response: PortalResponse): void;
  /** There is no response that counts: nobody comes in. */
  failed(failure: PortalFailure): void;
}

export interface PortalResponse {
  readonly status: number;
  readonly reason: string;
  readonly fields: HeaderList;
  /** Empty if the portal sent none, or one that is too long. */
  readonly body: Buffer;
}

export interface PortalFailure {
  readonly status: 502 | 503;
  readonly token: ErrorToken;
  /** For the error log. */
  readonly message: string;
}

/** Asks the portal of a policy about a request. One of the outcomes is called later, unless the client leaves before. */
export type AskPortal = (exchange: Exchange, judge: PolicyJudge, outcomes: PortalOutcomes) => void;

/**
 * Judges requests before a byte of their bodies is read, and before `100 Continue`: by addresses, then by passwords, then by
 * portals.
 */
export class AccessSteps {
  private readonly passwords: Passwords;

  constructor(
    users: AccessUsers,
    private readonly askPortal: AskPortal,
  ) {
    this.passwords = new Passwords(users);
  }

  /** From now on the files have these users. */
  setUsers(users: AccessUsers): void {
    this.passwords.setUsers(users);
  }

  /**
   * Judges a request.
   *
   * @param admitted called later if the request has to wait and may come in then
   * @returns whether it may come in; else it waits, or was refused
   */
  admits<E extends Exchange>(exchange: E, guard: RouteGuard, admitted: (exchange: E) => void): boolean {
    const { client, request } = exchange;
    const refusal = guard.refusal(client.address, request.target, request.path);
    if (refusal !== undefined) {
      refuse(exchange, refusal, "error", "the client may not come in");
      return false;
    }
    if (!guard.asksForUser) return true;
    const judges = guard.asking(request.target, request.path);
    const asking = judges.filter(({ policy }) => policy.forwardAuth !== undefined);
    const basics = judges.filter(({ policy }) => policy.basic !== undefined);
    const goOn = (): void => {
      if (this.asksNone(exchange, asking, admitted)) admitted(exchange);
    };
    if (basics.length > 0 && !new UserStep(exchange, this.passwords, basics, goOn).begin()) return false;
    return this.asksNone(exchange, asking, admitted);
  }

  /** Asks portals one after the other. @returns whether there is none: the request may come in at once */
  private asksNone<E extends Exchange>(
    exchange: E,
    [judge, ...others]: readonly PolicyJudge[],
    admitted: (exchange: E) => void,
  ): boolean {
    if (judge === undefined) return true;
    const outcomes = {
      admitted: () => {
        if (this.asksNone(exchange, others, admitted)) admitted(exchange);
      },
      refused: (response: PortalResponse) => passOn(exchange, judge, response),
      failed: ({ status, token, message }: PortalFailure) => {
        const refusal = { policy: judge.name, by: "forwardAuth", refusal: status } as const;
        log(exchange, refusal, "error", message);
        respondFailure(exchange, token, status, status === 503 ? LATER : undefined);
      },
    };
    this.askPortal(exchange, judge, outcomes);
    return false;
  }
}

/** A request whose user is verified. It holds the exchange while it waits. */
class UserStep implements ExchangeHolder, PasswordWaiter, Guarded {
  private leave: (() => void) | undefined = undefined;

  constructor(
    private readonly exchange: Exchange,
    private readonly passwords: Passwords,
    private readonly judges: readonly PolicyJudge[],
    private readonly admitted: () => void,
  ) {}

  /** @returns whether the request may come in at once */
  begin(): boolean {
    const { exchange, judges } = this;
    const { fields, headers } = exchange.request;
    const given = fields === undefined ? headerValue(headers, "authorization") : fields.authorization;
    const credentials = given === undefined ? undefined : basicCredentials(given);
    for (const judge of judges) {
      if (credentials === undefined) {
        this.ask(judge, "info", "the client names no user");
        return false;
      }
      const isRight = this.passwords.known(judge.policy.basic!.usersFile, credentials);
      if (isRight === true) continue;
      if (isRight === false) this.ask(judge, "error", "wrong user or password");
      else this.wait(judge, credentials);
      return false;
    }
    exchange.user = bothUsers(exchange.user, verifiedUser(judges, credentials!.user));
    return true;
  }

  onVerified(error?: Error): void {
    guarded(this, this.goOn, error);
  }

  onDrain(): void {
    // It sends nothing while it waits.
  }

  onReleased(): void {
    this.leave?.();
  }

  onFault(error: unknown): void {
    this.exchange.onFault(error);
  }

  private goOn(error?: Error): void {
    const { exchange } = this;
    exchange.letGo(this);
    if (error !== undefined) {
      const message = `the password cannot be verified: ${error.message}`;
      return refuse(exchange, this.busy(this.judges[0]!, 503), "crit", message, LATER);
    }
    if (this.begin()) this.admitted();
  }

  private wait(judge: PolicyJudge, credentials: BasicCredentials): void {
    const { exchange } = this;
    if (!exchange.hold(this)) return;
    const { address } = exchange.client;
    const leave = this.passwords.verify(judge.policy.basic!.usersFile, credentials, address, this);
    if (typeof leave === "function") {
      this.leave = leave;
      return;
    }
    exchange.letGo(this);
    const isClient = leave === "client";
    const whose = isClient ? "of the client wait" : "wait";
    refuse(
      exchange,
      this.busy(judge, isClient ? 429 : 503),
      "error",
      `too many passwords ${whose} to be verified`,
      LATER,
    );
  }

  private busy({ name: policy }: PolicyJudge, status: 429 | 503): AccessRefusal {
    return { policy, by: "basic", refusal: status };
  }

  private ask({ policy, unknownUser }: PolicyJudge, level: "info" | "error", message: string): void {
    const challenge = `Basic realm="${policy.basic!.realm}", charset="UTF-8"`;
    refuse(this.exchange, unknownUser!, level, message, { headers: ["WWW-Authenticate", challenge] });
  }
}

/** The client gets the portal's response: most often the way to it, or what to send. */
function passOn(exchange: Exchange, { name }: PolicyJudge, response: PortalResponse): void {
  const { status, reason, fields, body } = response;
  const asksToSignOn = status < 400 || status === 401;
  const message = asksToSignOn ? "the client has not signed on" : `the portal responded with ${status}`;
  log(
    exchange,
    { policy: name, by: "forwardAuth", refusal: status },
    asksToSignOn ? "info" : "error",
    message,
  );
  exchange.sendHead(status, reason, fields, body.length);
  if (body.length > 0 && exchange.request.method !== "HEAD") exchange.sendData(body);
  exchange.end();
}

const LATER: { readonly headers: HeaderList } = { headers: ["Retry-After", "5"] };

function log(exchange: Exchange, refusal: AccessRefusal, level: ErrorLevel, message: string): void {
  exchange.accessRefusal = refusal;
  exchange.route?.errorLog.write(level, `access="${refusalText(refusal)}": ${message}`, exchange);
}

function refuse(
  exchange: Exchange,
  refusal: AccessRefusal,
  level: ErrorLevel,
  message: string,
  options?: ErrorOptions,
): void {
  const { refusal: response } = refusal;
  log(exchange, refusal, level, message);
  if (response === "close") {
    exchange.errorToken = "http_request_denied";
    return exchange.abort();
  }
  // By `Proxy-Status`, a client could tell a closed path from one that does not exist.
  const token = response === 404 ? "destination_not_found" : "http_request_denied";
  respondFailure(exchange, token, response, options);
}
