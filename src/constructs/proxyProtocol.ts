import { fields, judged } from "./props/propTable.js";

/** Who may name clients by the PROXY protocol, version 1 or 2. */
export interface ProxyProtocolOptions {
  readonly from: readonly string[];
}

export const PROXY_PROTOCOL = fields<ProxyProtocolOptions>({ from: judged });
