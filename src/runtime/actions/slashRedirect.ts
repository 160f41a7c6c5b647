import type { RouteConfig } from "../../model/index.js";
import { isFileMethod, withSlash } from "../../model/serving.js";
import { sendPage } from "../dispatch/errorPages.js";
import type { RouteAction, Exchange } from "../exchange/exchange.js";

/** Leads browsers from the path of a route to the path with a slash, and hands all other requests to its action. */
export class SlashRedirect implements RouteAction {
  constructor(
    private readonly route: RouteConfig,
    private readonly action: RouteAction,
  ) {}

  handle(exchange: Exchange): void {
    const { method, path, target, upgrade } = exchange.request;
    // Clients of a WebSocket follow no redirect.
    if (path !== this.route.path || !isFileMethod(method) || upgrade !== undefined)
      return this.action.handle(exchange);
    sendPage(exchange, 301, ["Location", withSlash(target, path)]);
  }
}
