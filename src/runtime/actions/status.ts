import { type ActionOf, type RouteConfig, withinRanges } from "../../model/serving.js";
import { respondError } from "../dispatch/errorPages.js";
import type { RouteAction, Exchange } from "../exchange/exchange.js";
import { reasonPhrase } from "../dispatch/reasonPhrases.js";
import { guarded } from "../sockets/guarded.js";
import { isOwnHost, OTHER_HOST } from "../status/ownHost.js";
import { type AskStatus, partOfQuery, STATUS_FIELDS, type StatusResponse } from "../status/asked.js";

/**
 * Shows the status to clients that may see it. The master makes the response, and repeats a recent one for frequent
 * requests (`supervisor/servedOverview.ts`).
 */
export class StatusAction implements RouteAction {
  private readonly isAllowed: (address: string) => boolean;

  constructor(
    private readonly route: RouteConfig,
    private readonly config: ActionOf<"status">,
    private readonly ask: AskStatus,
  ) {
    this.isAllowed = withinRanges(config.allow);
  }

  handle(exchange: Exchange): void {
    const { request, client } = exchange;
    // nginx's `allow` and `deny` respond with the same status.
    if (!this.isAllowed(client.address)) return respondError(exchange, 403);
    // Over TLS a browser has verified that the certificate is for the name.
    if (client.scheme === "http" && !isOwnHost(request.host, exchange.server.serverNames))
      return respondError(exchange, 421, { reason: OTHER_HOST });
    const { method, target } = request;
    if (method !== "GET" && method !== "HEAD")
      return respondError(exchange, 405, { headers: ["Allow", "GET, HEAD"] });
    const { path } = this.route;
    if (request.path !== path && request.path !== `${path}/`) return respondError(exchange, 404);
    const at = target.indexOf("?");
    const part = partOfQuery(at === -1 ? "" : target.slice(at + 1));
    if (part === undefined) return respondError(exchange, 404);
    const { addresses, fileNames } = this.config;
    void this.ask({ part, addresses, fileNames }).then((response) =>
      guarded(exchange, () => respond(exchange, response)),
    );
  }
}

function respond(exchange: Exchange, response: StatusResponse | undefined): void {
  // The client may be gone: then this sends nothing.
  if (exchange.released) return;
  if (response === undefined) return respondError(exchange, 503, { headers: ["Retry-After", "5"] });
  const body = Buffer.from(response.body);
  const fields = ["Content-Type", response.contentType, ...STATUS_FIELDS];
  exchange.sendHead(200, reasonPhrase(200), fields, body.length);
  if (exchange.request.method !== "HEAD") exchange.sendData(body);
  exchange.end();
}
