import type { Scheme } from "../net/authority.js";
import type { RouteConfig, VirtualServerConfig } from "./config.js";

/** A field as it is written in a response. */
export interface ResponseField {
  readonly name: string;
  readonly value: string;
}

/** The field that replaces all fields of a name, by lower-case name; undefined if the field is removed. */
export type ResponseFieldRules = ReadonlyMap<string, ResponseField | undefined>;

/**
 * The config's rules for the fields of responses: the virtual server's, and the route's, which take priority (decisions
 * 5.5).
 *
 * @param route undefined if no route matched
 */
export function responseFieldRules(
  server: VirtualServerConfig,
  route: RouteConfig | undefined,
  scheme: Scheme,
): ResponseFieldRules {
  const rules = new Map<string, ResponseField | undefined>();
  const apply = ({ set, remove }: VirtualServerConfig["responseHeaders"]): void => {
    for (const name of remove) rules.set(name.toLowerCase(), undefined);
    for (const [name, value] of Object.entries(set)) rules.set(name.toLowerCase(), { name, value });
  };
  // RFC 6797, 7.2: never over http, also if the upstream sent it.
  if (server.hsts !== undefined)
    rules.set(HSTS.toLowerCase(), scheme === "https" ? hstsField(server.hsts) : undefined);
  apply(server.responseHeaders);
  if (route === undefined) return rules;
  const { action } = route;
  // The route's own option takes priority over its virtual server, like every option of a route.
  if (action.type === "staticFiles" && action.cacheControl !== undefined) rules.delete("cache-control");
  apply(route.responseHeaders);
  return rules;
}

/** Bytes that the fields which are set take in an HTTP/1.1 head. */
export function setBytes(rules: ResponseFieldRules): number {
  const lines = [...rules.values()].map((field) =>
    field === undefined ? 0 : `${field.name}: ${field.value}\r\n`.length,
  );
  return lines.reduce((sum, bytes) => sum + bytes, 0);
}

const HSTS = "Strict-Transport-Security";

function hstsField({
  maxAge,
  includeSubDomains,
  preload,
}: NonNullable<VirtualServerConfig["hsts"]>): ResponseField {
  const value = [
    `max-age=${maxAge}`,
    ...(includeSubDomains ? ["includeSubDomains"] : []),
    ...(preload ? ["preload"] : []),
  ].join("; ");
  return { name: HSTS, value };
}
