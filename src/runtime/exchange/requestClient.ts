import { forwardedClient, type ProxyConfig, withinRanges } from "../../model/serving.js";
import type { RequestHead } from "../codec/request.js";
import type { ClientInfo } from "./exchange.js";

/** Whose a request is that came through a trusted proxy, which has a connection for the requests of many clients. */
export class RequestClients {
  private readonly field: string;
  private readonly trusted: (address: string) => boolean;

  constructor(config: Pick<ProxyConfig, "trustedProxies" | "clientAddressField">) {
    this.field = config.clientAddressField.toLowerCase();
    this.trusted = withinRanges(config.trustedProxies);
  }

  /** The client of the request; the connection's own, the same object, unless a trusted proxy names another. */
  of(client: ClientInfo, request: RequestHead): ClientInfo {
    if (!client.trusted) return client;
    const address = forwardedClient(request.headers, this.field, this.trusted);
    if (address === undefined || address === client.address) return client;
    return { ...client, address, port: 0, forwardedBy: client.address };
  }
}
