import { fields, judged } from "./props/propTable.js";

/** Who may name clients by the PROXY protocol, version 1 or 2. */
export interface ProxyProtocolOptions {
  /**
   * Addresses and CIDR ranges, as connections come from there; at least one. A connection from them without a valid
   * header is closed, and on any other a header is a malformed request.
   */
  readonly from: readonly string[];
}

export const PROXY_PROTOCOL = fields<ProxyProtocolOptions>({ from: judged });
