import { type ActionOf, hostAsked, redirectLocation } from "../../model/serving.js";
import { sendPage } from "../dispatch/errorPages.js";
import type { Action, Exchange } from "../exchange/exchange.js";

/** Sends the client to another scheme, host, port or path (decisions 1.5: port 80 in TLS mode). */
export class RedirectAction implements Action {
  constructor(private readonly config: ActionOf<"redirect">) {}

  handle(exchange: Exchange): void {
    const { request, server, client } = exchange;
    const host = hostAsked(request.serverName, server.serverNames, client.localAddress);
    const location = redirectLocation(this.config, host, request.target);
    sendPage(exchange, this.config.status, ["Location", location]);
  }
}
