import { type Scheme, urlAuthority } from "../model/index.js";

/** How clients reach the host. */
export interface PublicOrigin {
  readonly scheme: Scheme;
  /** Name or address, IPv6 without brackets. */
  readonly host: string;
  /** Port that clients use; a text if the value is not known yet. */
  readonly port: number | string;
}

/** `scheme://host[:port]`, the port left out where it is the scheme's own (RFC 3986, 3.2; RFC 6454, 6.1). */
export function renderOrigin({ scheme, host, port }: PublicOrigin): string {
  return `${scheme}://${urlAuthority(scheme, host, port)}`;
}
