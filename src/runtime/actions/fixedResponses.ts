import type { ActionOf } from "../../model/index.js";
import { hostAsked, redirectLocation } from "../../model/serving.js";
import { respondFailure, sendPage } from "../dispatch/errorPages.js";
import { reasonPhrase } from "../dispatch/reasonPhrases.js";
import type { RouteAction, Exchange, HeaderList } from "../exchange/exchange.js";

/** Responds to every method with a fixed status and body. */
export class RespondAction implements RouteAction {
  private readonly status: number;
  private readonly reason: string;
  private readonly headers: HeaderList;
  private readonly body: Buffer;
  private readonly length: number;

  constructor(config: ActionOf<"respond">) {
    this.status = config.status;
    this.reason = reasonPhrase(config.status);
    this.body = Buffer.from(config.body);
    this.headers = Object.freeze(
      this.body.length === 0 ? [] : ["Content-Type", config.contentType],
    ) as HeaderList;
    // The length of a 304 is that of the response it replaces (RFC 9110, 8.6), which is not known here.
    this.length = config.status === 304 ? -1 : this.body.length;
  }

  handle(exchange: Exchange): void {
    // Success would open a tunnel that has no other end (RFC 8441, 5).
    if (exchange.request.method === "CONNECT" && this.status < 300)
      return respondFailure(exchange, "http_request_error", 501);
    exchange.sendHead(this.status, this.reason, this.headers, this.length);
    if (this.body.length > 0 && exchange.request.method !== "HEAD") exchange.sendData(this.body);
    exchange.end();
  }
}

/** Sends the client to another scheme, host, port or path (decisions 1.5: port 80 in TLS mode). */
export class RedirectAction implements RouteAction {
  constructor(
    private readonly config: ActionOf<"redirect">,
    private readonly below: string,
  ) {}

  handle(exchange: Exchange): void {
    const { request, server, client } = exchange;
    const host = hostAsked(request.serverName, server.serverNames, client.localAddress);
    const location = redirectLocation(this.config, host, request.target, this.below, request.path);
    sendPage(exchange, this.config.status, ["Location", location]);
  }
}
