import {
  CATCH_ALL,
  type RedirectActionConfig,
  redirectPort,
  type RouteConfig,
  urlAuthority,
} from "../../model/serving.js";
import { sendPage } from "../exchange/errorPages.js";
import type { Action, Exchange } from "../exchange/exchange.js";

/**
 * Sends the client to the same target under another scheme, host or port (decisions 1.5: port 80 in TLS mode).
 *
 * The target goes out byte for byte: what the client asked for there is what it asks for next (nginx's
 * `return 301 https://$host$request_uri`). It holds no control bytes, or the protocol would have refused it.
 */
export class RedirectAction implements Action {
  private readonly port: number;

  constructor(
    _route: RouteConfig,
    private readonly config: RedirectActionConfig,
  ) {
    this.port = redirectPort(config);
  }

  handle(exchange: Exchange): void {
    const { scheme, host, status } = this.config;
    const authority = urlAuthority(scheme, host ?? hostAsked(exchange), this.port);
    sendPage(exchange, status, ["Location", `${scheme}://${authority}${exchange.request.target}`]);
  }
}

/**
 * The host without its port, which was the port of this listener. A client of HTTP/1.0 may have named none: then the
 * server's own first name answers, and where it has only the catch-all, the address the client reached.
 */
function hostAsked(exchange: Exchange): string {
  const { serverName } = exchange.request;
  if (serverName !== "") return serverName;
  const name = exchange.server.serverNames.find((candidate) => candidate !== CATCH_ALL);
  // A zone id means something on this host only, and an IPv4 client on a mapped address asked for IPv4.
  return name ?? exchange.client.localAddress.replace(/%.*$/, "").replace(/^::ffff:(?=\d+\.)/i, "");
}
