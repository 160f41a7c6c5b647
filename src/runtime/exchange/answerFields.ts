import {
  type AnswerFieldRules,
  answerFieldRules,
  type HeaderList,
  type RouteConfig,
  type VirtualServerConfig,
} from "../../model/serving.js";

/** Fields that the config sets or removes in answers (decisions 5.5), made ready to be applied to a head. */
export class AnswerFields {
  /** Whether the `Server` field is left out. */
  readonly hidesServer: boolean;
  /** What is set: as lines of an HTTP/1.1 head, and as names and values in turn. */
  private readonly lines: string;
  private readonly set: HeaderList = [];
  /** Lines of fields that are removed or replaced. No value contains a line end, so `^` is the start of a field. */
  private readonly replaced: RegExp;

  constructor(private readonly rules: AnswerFieldRules) {
    this.hidesServer = rules.has("server");
    for (const field of rules.values()) if (field !== undefined) this.set.push(field.name, field.value);
    this.lines = linesOf(this.set);
    const names = [...rules.keys()].map((name) => name.replace(/[$*+.^|]/g, "\\$&"));
    this.replaced = new RegExp(`^(?:${names.join("|")}):[^\\n]*\\n`, "gim");
  }

  /** @param lines of an HTTP/1.1 head, each with its CRLF, and its blank line */
  inLines(lines: string): string {
    return this.lines + lines.replace(this.replaced, "");
  }

  inList(headers: HeaderList): HeaderList {
    const list = this.set.slice();
    for (let i = 0; i < headers.length; i += 2) {
      if (!this.rules.has(headers[i]!.toLowerCase())) list.push(headers[i]!, headers[i + 1]!);
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

/** By the scheme that a client uses: what is sent over TLS only differs. */
export type AnswerFieldsByScheme = { readonly [scheme in "http" | "https"]: AnswerFields | undefined };

/** @returns undefined if the config has no rules for the fields of these answers */
export function compileAnswerFields(
  server: VirtualServerConfig,
  route?: RouteConfig,
): AnswerFieldsByScheme | undefined {
  const compiled = (scheme: "http" | "https"): AnswerFields | undefined => {
    const rules = answerFieldRules(server, route, scheme);
    return rules.size === 0 ? undefined : new AnswerFields(rules);
  };
  const [http, https] = [compiled("http"), compiled("https")];
  return http === undefined && https === undefined ? undefined : { http, https };
}

/** What decides about the fields of an answer. */
interface Answering {
  readonly server: VirtualServerConfig;
  readonly route: { readonly answerFields: AnswerFieldsByScheme | undefined } | undefined;
  readonly client: { readonly answerRules: "http" | "https" };
}

/** What applies to the answer of an exchange: its route's rules, or its server's if no route matched. */
export function answerFieldsFor(exchange: Answering): AnswerFields | undefined {
  const { route, client } = exchange;
  const byScheme = route === undefined ? ofServer(exchange.server) : route.answerFields;
  return byScheme?.[client.answerRules];
}

/** Only answers without a route ask for those of a server. */
function ofServer(server: VirtualServerConfig): AnswerFieldsByScheme | undefined {
  if (!servers.has(server)) servers.set(server, compileAnswerFields(server));
  return servers.get(server);
}

const servers = new WeakMap<VirtualServerConfig, AnswerFieldsByScheme | undefined>();
