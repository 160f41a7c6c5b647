import {
  type ResponseFieldRules,
  responseFieldRules,
  type HeaderList,
  type RouteConfig,
  type VirtualServerConfig,
} from "../../model/serving.js";

/** Fields that the config sets or removes in responses (decisions 5.5), made ready to be applied to a head. */
export class ResponseFields {
  /** Whether the `Server` field is left out. */
  readonly hidesServer: boolean;
  /** Fields to set: as lines of an HTTP/1.1 head, and as names and values in turn. */
  private readonly lines: string;
  private readonly set: HeaderList = [];
  /** Lines of fields that are removed or replaced. No value contains a line end, so `^` is the start of a field. */
  private readonly replaced: RegExp;

  /** @param idField field of each response that has its request's id */
  constructor(
    private readonly rules: ResponseFieldRules,
    private readonly idField?: string,
  ) {
    this.hidesServer = rules.has("server");
    for (const field of rules.values()) if (field !== undefined) this.set.push(field.name, field.value);
    this.lines = linesOf(this.set);
    const names = [...rules.keys(), ...(idField === undefined ? [] : [idField])].map((name) =>
      name.replace(/[$*+.^|]/g, "\\$&"),
    );
    this.replaced = new RegExp(`^(?:${names.join("|")}):[^\\n]*\\n`, "gim");
  }

  /** @param lines of an HTTP/1.1 head, each with its CRLF, and its blank line */
  inLines(lines: string, requestId?: string): string {
    const id =
      this.idField === undefined || requestId === undefined ? "" : `${this.idField}: ${requestId}\r\n`;
    return this.lines + id + lines.replace(this.replaced, "");
  }

  inList(headers: HeaderList, requestId?: string): HeaderList {
    const list = this.set.slice();
    const idField = this.idField?.toLowerCase();
    if (idField !== undefined && requestId !== undefined) list.push(this.idField!, requestId);
    for (let i = 0; i < headers.length; i += 2) {
      const name = headers[i]!.toLowerCase();
      if (name !== idField && !this.rules.has(name)) list.push(headers[i]!, headers[i + 1]!);
    }
    return list;
  }
}

/** The fields of a list as lines of an HTTP/1.1 head. */
export function linesOf(headers: HeaderList): string {
  let lines = "";
  for (let i = 0; i < headers.length; i += 2) lines += `${headers[i]}: ${headers[i + 1]}\r\n`;
  return lines;
}

/** The fields for each scheme that clients use: some fields are sent only over TLS. */
export type ResponseFieldsByScheme = { readonly [scheme in "http" | "https"]: ResponseFields | undefined };

/**
 * @param idField field of each response that has its request's id, if any
 * @returns undefined if the config has no rules for the fields of these responses
 */
export function compileResponseFields(
  server: VirtualServerConfig,
  route?: RouteConfig,
  idField?: string,
): ResponseFieldsByScheme | undefined {
  const compiled = (scheme: "http" | "https"): ResponseFields | undefined => {
    const rules = responseFieldRules(server, route, scheme);
    // A rule of the administrator for this field has priority.
    const id = idField === undefined || rules.has(idField.toLowerCase()) ? undefined : idField;
    return rules.size === 0 && id === undefined ? undefined : new ResponseFields(rules, id);
  };
  const [http, https] = [compiled("http"), compiled("https")];
  return http === undefined && https === undefined ? undefined : { http, https };
}

/** What decides about the fields of a response. */
interface Responding {
  readonly server: VirtualServerConfig;
  readonly route: { readonly responseFields: ResponseFieldsByScheme | undefined } | undefined;
  readonly client: { readonly responseRules: "http" | "https" };
}

/** What applies to the response of an exchange: its route's rules, or its server's if no route matched. */
export function responseFieldsFor(exchange: Responding): ResponseFields | undefined {
  const { route, client } = exchange;
  const byScheme = route === undefined ? ofServer(exchange.server) : route.responseFields;
  return byScheme?.[client.responseRules];
}

/** Registers the fields of a server's responses without a route, if they include the id of the request. */
export function setServerFields(server: VirtualServerConfig, idField: string): void {
  servers.set(server, compileResponseFields(server, undefined, idField));
}

/** Only responses without a route ask for those of a server. */
function ofServer(server: VirtualServerConfig): ResponseFieldsByScheme | undefined {
  if (!servers.has(server)) servers.set(server, compileResponseFields(server));
  return servers.get(server);
}

const servers = new WeakMap<VirtualServerConfig, ResponseFieldsByScheme | undefined>();
