import { ipv6Groups, ipv6Scope, isIpv6 } from "./address.js";

/** Hosts and ports as URLs, sockets and messages write them (RFC 3986, 3.2). */

export type Scheme = "http" | "https";

/** A host and a port, an IPv6 address without brackets. */
export interface HostAndPort {
  readonly host: string;
  readonly port: number;
}

/** Port of a URL that names none (RFC 9110, 4.2.1 and 4.2.2). */
export const defaultPort = (scheme: Scheme): number => (scheme === "https" ? 443 : 80);

/** A host as it is written in front of a port: an IPv6 address in brackets. */
export const bracketed = (host: string): string => (host.includes(":") ? `[${host}]` : host);

/** A host as a socket takes it: an IPv6 address without brackets. */
export const unbracketed = (host: string): string => (host.startsWith("[") ? host.slice(1, -1) : host);

/** `192.0.2.1:80`, `[2001:db8::1]:80` */
export const endpoint = ({ host, port }: HostAndPort): string => `${bracketed(host)}:${port}`;

/**
 * A host and a port as they are written in a URL: without the scheme's own port.
 *
 * @param port a text if the value is not known yet
 */
export function urlAuthority(scheme: Scheme, host: string, port: number | string): string {
  return Number(port) === defaultPort(scheme) ? bracketed(host) : `${bracketed(host)}:${port}`;
}

/** The address that an upstream listens on: a host and a port, or a Unix socket. */
export type UpstreamAddress = HostAndPort | { readonly path: string };

const UNIX = "unix:";

/** The address in a valid URL of an upstream: `http://host[:port]`, `https://host[:port]` or `unix:/path`. */
export function upstreamAddress(url: string): UpstreamAddress {
  if (url.startsWith(UNIX)) return { path: url.slice(UNIX.length) };
  const { hostname, port } = new URL(url);
  return { host: unbracketed(hostname), port: port === "" ? defaultPort(upstreamScheme(url)) : Number(port) };
}

/** Whether an upstream speaks HTTP over TLS. */
export const upstreamScheme = (url: string): Scheme => (url.startsWith("https:") ? "https" : "http");

/** Whether a host leads to the machine itself, whatever its addresses are. */
export function isLoopback(host: string): boolean {
  if (!isIpv6(host)) return host === "localhost" || /^127\.[\d.]+$/.test(host);
  const groups = ipv6Groups(host)!;
  const isMapped = groups.slice(0, 6).join() === "0,0,0,0,0,65535";
  return ipv6Scope(host) === "loopback" || (isMapped && groups[6]! >> 8 === 127);
}

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
