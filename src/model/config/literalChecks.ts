import { type Problem, problem } from "../text/problem.js";
import type { ProxyConfig } from "./config.js";

/**
 * Placeholders of other proxies. Values are sent as they are written, so a client or an upstream would get the
 * placeholder itself. Only names that these proxies fill in are listed: a price and an OData path (`/$metadata`) are
 * values.
 */
const PLACEHOLDERS: readonly RegExp[] = [
  // nginx
  new RegExp(
    String.raw`\$\{?(?:host|hostname|scheme|uri|args|query_string|is_args|request_(?:uri|id|method|body)|server_(?:name|port|addr)` +
      String.raw`|remote_(?:addr|port|user)|binary_remote_addr|document_root|(?:http|arg|cookie|ssl|proxy|upstream)_[a-z_]+)(?![A-Za-z0-9_])\}?`,
  ),
  // A group of a pattern, as the whole of a path's segment.
  /(?<=\/)\$[1-9](?=$|[/?])/,
  // HAProxy
  /%\[[a-z][^\]]*\]/,
  // Apache
  /%\{[A-Z][A-Z_:]*[A-Z]\}|%\{[A-Za-z-]+\}[es](?![A-Za-z])/,
  // Caddy
  /\{\$[A-Z][A-Z0-9_]*\}|\{[<>][A-Za-z][A-Za-z0-9-]*\}/,
  // Shells and Compose
  /\$\{[A-Z][A-Z0-9_]*(?::?[-?][^$}]*)?\}/,
  // Traefik and other templates of Go
  /\{\{-? ?\.[A-Za-z][^{}]*\}\}/,
  /\{(?:host|hostport|scheme|uri|remote|remote_host|remote_port|client_ip|upstream_hostport|(?:http|header|env|vars|query|re)\.[A-Za-z0-9_.-]+)\}/,
];

/** Texts for people, which may name placeholders. */
const PROSE: readonly string[] = ["body", "html", "page"];

/** Placeholders in values of any field. */
export function placeholderProblems(config: ProxyConfig): Problem[] {
  return placeholdersIn(config, "");
}

function placeholdersIn(value: unknown, path: string): Problem[] {
  if (typeof value === "string") {
    const [found] = PLACEHOLDERS.flatMap((pattern) => pattern.exec(value)?.[0] ?? []);
    if (found === undefined) return [];
    const message = `contains \`${found}\`, which the proxy does not replace`;
    return [problem("config.placeholder", path, message, { received: value })];
  }
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    if (PROSE.includes(name)) return [];
    const at = Array.isArray(value) ? `${path}[${name}]` : `${path}${path === "" ? "" : "."}${name}`;
    return placeholdersIn(inner, at);
  });
}
