import {
  type AccessRefusal,
  type AccessUsers,
  basicCredentials,
  type BasicCredentials,
  verifiedUser,
  type PolicyJudge,
  type RouteGuard,
  refusalText,
} from "../../model/serving.js";
import { type ErrorOptions, respondFailure } from "./errorPages.js";
import { type Exchange, type ExchangeHolder, type HeaderList, headerValue } from "../exchange/exchange.js";
import { guarded, type Guarded } from "../sockets/guarded.js";
import { Passwords, type PasswordWaiter } from "./passwords.js";

/** Judges requests before a byte of their bodies is read, and before `100 Continue`: by addresses, then by users. */
export class AccessSteps {
  private readonly passwords: Passwords;

  constructor(users: AccessUsers) {
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
    if (judges.length === 0) return true;
    const step = new UserStep(exchange, this.passwords, judges, () => admitted(exchange));
    return step.begin();
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
    exchange.user = verifiedUser(judges, credentials!.user);
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

const LATER: { readonly headers: HeaderList } = { headers: ["Retry-After", "5"] };

function refuse(
  exchange: Exchange,
  refusal: AccessRefusal,
  level: "crit" | "error" | "info",
  message: string,
  options?: ErrorOptions,
): void {
  const { refusal: response } = refusal;
  exchange.accessRefusal = refusal;
  exchange.route?.errorLog.write(level, `access="${refusalText(refusal)}": ${message}`, exchange);
  if (response === "close") {
    exchange.errorToken = "http_request_denied";
    return exchange.abort();
  }
  // By `Proxy-Status`, a client could tell a closed path from one that does not exist.
  const token = response === 404 ? "destination_not_found" : "http_request_denied";
  respondFailure(exchange, token, response, options);
}
