import { isIPv4 } from "node:net";
import { canonicalIpv6, isIpv6 } from "./address.js";
import {
  accepting,
  DOMAIN_NAME_LENGTH_MAX,
  DOMAIN_NAME_PATTERN,
  IPV4_PATTERN,
  LONG_LABEL_PATTERN,
  LOWER_IPV6_PATTERN,
  type TextRule,
} from "../text/textRule.js";

/** The catch-all server name (service 1.3). Its name matches no request: its server must be a default server. */
export const CATCH_ALL = "_";

/** True for a lower-case DNS name of at most 253 characters (RFC 1035; `_` is allowed as nginx allows it). */
export const isDomainName = accepting({
  pattern: `^${DOMAIN_NAME_PATTERN}$`,
  never: LONG_LABEL_PATTERN,
  lengthMax: DOMAIN_NAME_LENGTH_MAX,
});

/** True for a domain name, IPv4, canonical IPv6 without brackets, or `_`. */
function isServerName(name: string): boolean {
  return (
    name === CATCH_ALL || isIPv4(name) || (isIpv6(name) && canonicalIpv6(name) === name) || isDomainName(name)
  );
}

/** The rule of {@link isServerName}. */
export const SERVER_NAME: TextRule = {
  pattern: `^(?:${DOMAIN_NAME_PATTERN}|${IPV4_PATTERN}|${LOWER_IPV6_PATTERN})$`,
  never: LONG_LABEL_PATTERN,
  lengthMax: DOMAIN_NAME_LENGTH_MAX,
  canonicalIpv6: true,
  accepts: isServerName,
};

/** Allowed values of `serverNames`: as {@link isServerName}, or `*.` and a domain name. */
export const SERVED_NAME: TextRule = {
  ...SERVER_NAME,
  pattern: `^(?:(?:\\*\\.)?${DOMAIN_NAME_PATTERN}|${IPV4_PATTERN}|${LOWER_IPV6_PATTERN})$`,
  accepts: (name) =>
    isWildcardName(name)
      ? name.length <= DOMAIN_NAME_LENGTH_MAX && isDomainName(name.slice(2))
      : isServerName(name),
};

/** A server name that clients use: any but the catch-all. */
export const PUBLIC_NAME: TextRule & { readonly allowed: string } = {
  ...SERVER_NAME,
  never: `${LONG_LABEL_PATTERN}|^${CATCH_ALL}$`,
  accepts: (name) => isServerName(name) && name !== CATCH_ALL,
  allowed: "a lower-case host name or an IP address, without scheme, port or brackets",
};

/** A further name of an application: as {@link PUBLIC_NAME}, or `*.` and a domain name. */
export const FURTHER_NAME: TextRule & { readonly allowed: string } = {
  ...SERVED_NAME,
  never: PUBLIC_NAME.never!,
  accepts: (name) => SERVED_NAME.accepts!(name) && name !== CATCH_ALL,
  allowed: `${PUBLIC_NAME.allowed}, or \`*.\` and a domain name`,
};

/** The rule for a name of an application by its place: the main one is in URLs. */
export const nameRule = (index: number): typeof PUBLIC_NAME => (index === 0 ? PUBLIC_NAME : FURTHER_NAME);

/** A `Host` field value, split: the name as it is compared with server names, and the port if one was given. */
export interface HostParts {
  readonly serverName: string;
  readonly port: string;
}

/**
 * Splits and normalises a `Host` value or URI authority: lower case, one trailing dot removed, port cut off (decisions
 * 1.1). Undefined for anything that is not `uri-host [ ":" port ]` (RFC 9110, 7.2), which includes the empty value,
 * user info and every control or delimiter byte.
 */
export function parseHost(value: string): HostParts | undefined {
  // A client asks for the same host again and again.
  if (value === last.value) return last.parts;
  last = { value, parts: parseAnyHost(value) };
  return last.parts;
}

let last: { value: string; parts: HostParts | undefined } = { value: "", parts: undefined };

function parseAnyHost(value: string): HostParts | undefined {
  if (value.charCodeAt(0) === 0x5b) return parseBracketedHost(value);
  const colon = value.indexOf(":");
  const name = (colon === -1 ? value : value.slice(0, colon)).toLowerCase();
  const port = colon === -1 ? "" : value.slice(colon + 1);
  if (!PORT.test(port) || Number(port) > 65535) return undefined;
  const serverName = name.endsWith(".") ? name.slice(0, -1) : name;
  return HOST_NAME.test(serverName) ? { serverName, port } : undefined;
}

const PORT = /^\d{0,5}$/;
// reg-name (RFC 3986, 3.2.2) less percent-encoding and sub-delims, which no deployed host name carries.
const HOST_NAME = /^[a-z0-9_](?:[a-z0-9_-]|\.(?!\.|$))*$/;

function parseBracketedHost(value: string): HostParts | undefined {
  const end = value.indexOf("]");
  const canonical = end === -1 ? undefined : canonicalIpv6(value.slice(1, end));
  if (canonical === undefined || value.includes("%")) return undefined;
  const rest = value.slice(end + 1);
  if (rest === "") return { serverName: canonical, port: "" };
  const port = rest.slice(1);
  return rest.startsWith(":") && PORT.test(port) && Number(port) <= 65535
    ? { serverName: canonical, port }
    : undefined;
}

/** `*.example.org`: its `*` stands for exactly one label, as in a certificate (RFC 9525, 6.3). */
export const isWildcardName = (name: string): boolean => name.startsWith("*.");

/** A host name that clients could use: for a wildcard, a name that it covers. */
export const sampleName = (name: string): string => name.replace("*", "portico-check");

/** The names of a list that are no wildcards, then one name for each wildcard. */
export function sampleNames(names: readonly string[]): string[] {
  const exact = names.filter((name) => !isWildcardName(name));
  return [...exact, ...names.filter(isWildcardName).map(sampleName)];
}

/**
 * Finds the entry of a host name: by the name itself, or else by the wildcard that covers it. Virtual servers and
 * certificates are chosen by the same rule, so a server with a wildcard is reached by the names that a certificate for
 * the same wildcard covers, and by no others.
 */
export class NameTable<T> {
  private readonly byName = new Map<string, T>();

  /** Adds names; a name that is taken stays with the first value. */
  add(names: readonly string[], value: T): void {
    for (const name of names) if (!this.byName.has(name)) this.byName.set(name, value);
  }

  /** @param name in lower case, without a dot at its end */
  find(name: string): T | undefined {
    return this.byName.get(name) ?? this.byName.get(wildcardFor(name));
  }

  /** The holder of exactly this name, which may be a wildcard. */
  holder(name: string): T | undefined {
    return this.byName.get(name);
  }
}

/** `*.example.org` for `www.example.org`. */
function wildcardFor(name: string): string {
  const dot = name.indexOf(".");
  return dot < 1 ? "" : `*${name.slice(dot)}`;
}
