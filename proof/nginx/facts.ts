import { type Field, fieldValue } from "../../testkit/messages.js";
import type { Outcome } from "../wire/responses.js";
import type { Ports } from "../wire/site.js";
import type { ClientResult } from "../wire/talk.js";
import type { RecordedRequest } from "../wire/upstream.js";

/** What was observed of one exchange, by name. Two proxies behave alike if all facts are equal. */
export type Facts = Readonly<Record<string, string>>;

/** Fields of a response that belong to the connection, or are facts of their own. */
const NOT_COMPARED = new Set(["connection", "keep-alive", "transfer-encoding", "server", "date"]);

/**
 * Facts of an exchange. What cannot be equal is put in neutral words: ports, the product's name with its version, the
 * boundary of a multipart body, and what stands in the entity tag of a file.
 */
export function factsOf(
  { outcome, connection }: ClientResult,
  requests: readonly RecordedRequest[],
  ports: Ports,
  method: string,
): Facts {
  const neutral = (text: string): string => withoutPorts(text, ports);
  // nginx takes a response without a status line for HTTP/0.9, and passes it on as it is.
  const isHttp = outcome.startLine.startsWith("HTTP/");
  const [version = "", status = ""] = isHttp ? outcome.startLine.split(" ") : [];
  const facts: Record<string, string> = {
    status: status === "" ? "0" : status,
    version,
    reason: isHttp ? outcome.startLine.split(" ").slice(2).join(" ") : "",
    informational: outcome.informational.join(","),
    framing: outcome.framing,
    complete: String(outcome.complete),
    connection,
    ...responseFields(outcome, method, requests.length > 0, neutral),
    body: neutral(bodyText(outcome)),
    upstream: requests.map((request) => request.upstream).join(","),
  };
  requests.forEach((request, i) => {
    const prefix = i === 0 ? "upstream" : `upstream#${i + 1}`;
    for (const [name, value] of Object.entries(requestFacts(request)))
      facts[`${prefix} ${name}`] = neutral(value);
  });
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== ""));
}

function responseFields(
  outcome: Outcome,
  method: string,
  proxied: boolean,
  neutral: (text: string) => string,
): Record<string, string> {
  const facts: Record<string, string> = {};
  for (const [name, value] of outcome.fields) {
    const key = `field ${name.toLowerCase()}`;
    if (NOT_COMPARED.has(name.toLowerCase())) continue;
    facts[key] = facts[key] === undefined ? neutral(value) : `${facts[key]} | ${neutral(value)}`;
  }
  const product = fieldValue(outcome.fields, "server") ?? "";
  const hasDate = fieldValue(outcome.fields, "date") !== undefined;
  if (product !== "") facts["server"] = product.includes("/") ? "with version" : "without version";
  if (outcome.startLine !== "") facts["date"] = hasDate ? "given" : "missing";
  const length = facts["field content-length"];
  if (length !== undefined && isOwnPage(outcome, method, proxied, product)) {
    facts["field content-length"] = `${Number(length) - product.length} + product`;
  }
  const type = facts["field content-type"];
  if (type !== undefined) facts["field content-type"] = type.replace(/boundary=.*/, "boundary=BOUNDARY");
  const etag = facts["field etag"];
  if (etag !== undefined && !proxied) facts["field etag"] = etag.replace(/"[^"]+"/g, '"OPAQUE"');
  return facts;
}

/** Whether the body is the proxy's page for a status, which ends with the proxy's name. */
function isOwnPage(outcome: Outcome, method: string, proxied: boolean, product: string): boolean {
  if (method !== "HEAD") return outcome.text.includes(`<hr><center>${product}</center>`);
  // Nothing but the length is seen of it.
  return Number(outcome.startLine.split(" ")[1]) >= 300 && !proxied;
}

function bodyText(outcome: Outcome): string {
  const product = fieldValue(outcome.fields, "server") ?? "";
  const text = outcome.text.replace(`<hr><center>${product}</center>`, "<hr><center>PRODUCT</center>");
  const boundary = /boundary=(.+)/.exec(fieldValue(outcome.fields, "content-type") ?? "");
  return boundary === null ? text : text.replaceAll(boundary[1]!, "BOUNDARY");
}

function requestFacts(request: RecordedRequest): Record<string, string> {
  const facts: Record<string, string> = {
    name: request.upstream,
    line: request.line,
    body: request.body.toString("latin1"),
    complete: String(request.complete),
    "given up": request.givenUp ? "true" : "",
  };
  for (const field of request.fields) {
    const key = `field ${field[0].toLowerCase()}`;
    // Names as they are written: they pass unchanged, so a difference in case is one.
    facts[key] = facts[key] === undefined ? written(field) : `${facts[key]} | ${written(field)}`;
  }
  return facts;
}

const written = ([name, value]: Field): string => `${name}: ${value}`;

function withoutPorts(text: string, ports: Ports): string {
  let out = text;
  for (const [name, port] of Object.entries(ports)) out = out.replaceAll(`:${port}`, `:{${name}}`);
  return out;
}
