import { DefaultTokenResolver, Fn, StringConcat, Token, Tokenization } from "cdktf";
import type { IConstruct } from "constructs";
import { bracketed, type Problem } from "../../model/index.js";
import { formatPath } from "../../model/config/parse.js";

/**
 * Values that Terraform knows only when it applies. A token looks like a string, a huge negative number or a list, and
 * code that slices, escapes or compares it corrupts it silently. So tokens never reach such code: each is first
 * replaced by a marker, and put back into the finished text.
 */

/** True if anything in the value, however deep, is not known yet. */
export function hasTokens(value: unknown): boolean {
  return unknownLeaves(value).length > 0;
}

/** The opposite for one value; the model's rules use it (they do not know cdktf). */
export function isKnown(value: unknown): boolean {
  return !hasTokens(value);
}

/** The value with every token replaced that turns out to be a plain value, such as a `Lazy` of a literal. */
export function settleTokens<T>(scope: IConstruct, value: T): T {
  const resolver = new DefaultTokenResolver(new StringConcat());
  return mapTokens(value, (leaf) => {
    const settled: unknown = Tokenization.resolve(leaf, { scope, resolver });
    return isPlain(settled) ? settled : leaf;
  }) as T;
}

/** A reference resolves to a template, so a text with one in it is not known yet. */
function isPlain(value: unknown): boolean {
  if (Array.isArray(value)) return value.every(isPlain);
  if (typeof value === "string") return !value.includes("${");
  return typeof value === "number" || typeof value === "boolean";
}

/** A text rendered from a value that may contain tokens, which come through the renderer's escaping untouched. */
export function renderAroundTokens<T>(value: T, render: (value: T) => string): string {
  const markers = new Markers();
  const marked = mapTokens(value, (leaf) => markers.mark(leaf, false)) as T;
  return markers.replace(render(marked), (token) => Token.asString(token));
}

/**
 * The same for JSON: each token is encoded by Terraform, with its own type (`jsonencode`). The document around it is
 * written here, so a plan shows it in the order and layout that the host gets.
 */
export function renderJsonAroundTokens<T>(value: T, render: (value: T) => string): string {
  const markers = new Markers();
  const marked = mapTokens(value, (leaf) => markers.mark(leaf, true)) as T;
  return markers.replace(render(marked), (token, whole) => {
    const json = Fn.jsonencode(token);
    // Inside a string the quotes around the encoded value have to go; the escapes in it stay.
    return whole ? json : Fn.trimsuffix(Fn.trimprefix(json, '\\"'), '\\"');
  });
}

/** A text as a Terraform template: `${` and `%{` are escaped unless they belong to a token. */
export function escapeTemplate(text: string): string {
  const escape = (literal: string): string => literal.replace(/[$%]\{/g, (open) => `${open[0]}${open}`);
  return splitTokens(text)
    .map((part) => (typeof part === "string" ? escape(part) : Token.asString(part.token)))
    .join("");
}

/**
 * Checks a value that may contain tokens: each is replaced by values of several kinds until the check accepts one, so
 * that everything else is judged as if all were known. Remaining problems of a token itself are dropped: only Terraform
 * knows its value.
 */
export function checkAroundTokens<T>(
  value: T,
  check: (value: T) => readonly Problem[],
): { readonly problems: readonly Problem[]; readonly placeholder: T } {
  const leaves = unknownLeaves(value).map(({ path }) => formatPath(path));
  const kinds = new Map(leaves.map((leaf) => [leaf, 0]));
  for (;;) {
    const names = new Markers();
    const placeholder = mapTokens(value, (leaf, path) =>
      placeholderFor(leaf, kinds.get(formatPath(path))!, names),
    ) as T;
    const problems = check(placeholder);
    const at = (leaf: string, p: Problem): boolean => p.path === leaf || p.path.startsWith(`${leaf}[`);
    const refused = leaves.filter((leaf) => problems.some((p) => at(leaf, p)));
    const untried = refused.filter((leaf) => kinds.get(leaf)! < PLACEHOLDERS.length - 1);
    if (untried.length === 0) {
      return { problems: problems.filter((p) => !refused.some((leaf) => at(leaf, p))), placeholder };
    }
    untried.forEach((leaf) => kinds.set(leaf, kinds.get(leaf)! + 1));
  }
}

// The first kind fits names, server names and whatever is between other text.
const PLACEHOLDERS: readonly ((name: string, number: number) => unknown)[] = [
  (name) => name,
  (name) => `/${name}`,
  (name) => `http://${name}`,
  // Beside `tls`.
  (name) => `https://${name}`,
  (_, number) => `192.0.2.${1 + (number % 250)}`,
  (_, number) => 20_000 + number,
  (_, number) => 1 + (number % 100),
  () => true,
  (name) => [name],
  (_, number) => [`192.0.2.${1 + (number % 250)}`],
  // A SHA-256.
  (_, number) => String(number).padStart(64, "0"),
];

function placeholderFor(leaf: TokenLeaf, kind: number, names: Markers): unknown {
  const known = (part: unknown): unknown => PLACEHOLDERS[kind]!(names.name(part), names.index(part));
  if (typeof leaf !== "string") return known(leaf);
  const parts = splitTokens(leaf);
  if (parts.length === 1) return known((parts[0] as TokenPart).token);
  return parts.reduce<string>((text, part) => {
    if (typeof part === "string") return text + part;
    // Text after a colon inside a URL is a port, other than those of listeners.
    return text + String(text.endsWith(":") ? 30_000 + names.index(part.token) : known(part.token));
  }, "");
}

/** A string with tokens in it, a number or list that is one, or a resolvable object. */
export type TokenLeaf = string | number | readonly unknown[] | object;

/** A value that is not known yet, and the path of its field. */
export interface UnknownLeaf {
  readonly path: readonly (string | number)[];
  readonly leaf: TokenLeaf;
}

/** The parts of a value that are not known yet. */
export function unknownLeaves(value: unknown): UnknownLeaf[] {
  const leaves: UnknownLeaf[] = [];
  mapTokens(value, (leaf, path) => {
    leaves.push({ path, leaf });
    return leaf;
  });
  return leaves;
}

/** A copy of the value with every unresolved leaf mapped. */
function mapTokens(
  value: unknown,
  map: (leaf: TokenLeaf, path: UnknownLeaf["path"]) => unknown,
  path: (string | number)[] = [],
): unknown {
  const leaf = typeof value === "string" ? withTextTokens(value) : value;
  if (isUnresolved(leaf)) return map(leaf as TokenLeaf, [...path]);
  if (typeof value !== "object" || value === null) return value;
  const mapped = (item: unknown, key: string | number): unknown => {
    path.push(key);
    const found = mapTokens(item, map, path);
    path.pop();
    return found;
  };
  if (Array.isArray(value)) return value.map(mapped);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mapped(item, key)]));
}

/** Like cdktf's own function, which is slower; every value of a config is checked many times. */
function isUnresolved(value: unknown): boolean {
  const marked = (text: string): boolean => text.includes("TfToken[");
  if (typeof value === "string") return marked(value) && Token.isUnresolved(value);
  if (typeof value === "number") return value < 0 && Token.isUnresolved(value);
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value)) return value.length === 1 && Token.isUnresolved(value);
  return ("resolve" in value || Object.keys(value).some(marked)) && Token.isUnresolved(value);
}

interface TokenPart {
  readonly token: unknown;
}

/** A text as an argument of a Terraform function, whatever it holds: quotes, backslashes, templates, tokens. */
export function textArgument(text: string): string {
  // rawString escapes quotes and `${` only.
  const literal = (part: string): string =>
    Fn.rawString(part.replaceAll("\\", "\\\\").replaceAll("%{", "%%{"));
  const parts = splitTokens(text).map((part) =>
    typeof part === "string" ? literal(part) : Token.asString(part.token),
  );
  return parts.length === 1 ? parts[0]! : Fn.join("", parts);
}

/** A value as an argument of a Terraform function; a text around tokens is the whole text that it becomes. */
export function argument(leaf: TokenLeaf): string {
  return typeof leaf === "string" ? textArgument(leaf) : Token.asString(leaf);
}

/** The texts of the tokens in a value, without the text around them. */
export function tokenTexts(leaf: TokenLeaf): string[] {
  const parts = typeof leaf === "string" ? splitTokens(leaf) : [{ token: leaf }];
  const tokens = parts.flatMap((part) => (typeof part === "string" ? [] : [Token.asString(part.token)]));
  return tokens.map((token) => Fn.join("", [token]));
}

/** An address that is not known yet, in Terraform's own form, which for IPv6 is canonical (RFC 5952). */
export const lateAddress = (address: string, bits: 32 | 128, otherwise: string): string =>
  Fn.try([Fn.cidrhost(Fn.join("/", [address, String(bits)]), 0), otherwise]) as string;

/** A host as it is written in a URL: an IPv6 address in brackets, also one that is not known yet. */
export function lateHostInUrl(host: string): string {
  if (!hasTokens(host)) return bracketed(host);
  const value = argument(host);
  const hasColon = Fn.can(Fn.regex(":", value));
  return Token.asString(Fn.conditional(hasColon, Fn.join("", ["[", value, "]"]), value));
}

/** `http://host:${port}` contains a number that is not known yet as the huge number that stands for it. */
function withTextTokens(text: string): string {
  if (!text.includes("e+")) return text;
  return text.replace(/-\d\.\d+e\+\d{3}/g, (written) =>
    Token.isUnresolved(Number(written)) ? Token.asString(Number(written)) : written,
  );
}

/** The literal texts and the tokens of a string, in order. */
function splitTokens(text: string): (string | TokenPart)[] {
  const parts: (string | TokenPart)[] = [];
  let rest = withTextTokens(text);
  for (const token of Tokenization.reverseString(rest).tokens) {
    const written = Token.asString(token);
    const at = rest.indexOf(written);
    if (at > 0) parts.push(rest.slice(0, at));
    parts.push({ token });
    rest = rest.slice(at + written.length);
  }
  return rest === "" ? parts : [...parts, rest];
}

/** Words that stand for tokens while a text is rendered: one label of a host name, so no renderer escapes them. */
class Markers {
  private readonly tokens: { readonly token: unknown; readonly key: string }[] = [];

  index(token: unknown): number {
    const key = typeof token === "object" && !Array.isArray(token) ? Token.asString(token) : String(token);
    const at = this.tokens.findIndex((t) => t.key === key);
    return at === -1 ? this.tokens.push({ token, key }) - 1 : at;
  }

  name(token: unknown): string {
    return `portico-token-${this.index(token)}x`;
  }

  /** @param json whether a leaf that is nothing but a token loses the quotes around its marker */
  mark(leaf: TokenLeaf, json: boolean): unknown {
    const whole = (token: unknown): string => (json ? `whole-${this.name(token)}` : this.name(token));
    if (typeof leaf !== "string") return whole(leaf);
    const parts = splitTokens(leaf);
    if (parts.length === 1) return whole((parts[0] as TokenPart).token);
    return parts.map((part) => (typeof part === "string" ? part : this.name(part.token))).join("");
  }

  replace(text: string, write: (token: unknown, whole: boolean) => string): string {
    return text.replace(
      /"whole-portico-token-(\d+)x"|portico-token-(\d+)x/g,
      (_, whole?: string, part?: string) =>
        write(this.tokens[Number(whole ?? part)]!.token, whole !== undefined),
    );
  }
}
