/**
 * A rule for a text, in patterns that JavaScript and RE2 read alike: no look-around, no back references. So the same
 * rule applies here, in an editor (JSON Schema), on the host for values that only Terraform knows, and in Terraform for
 * those of a connection.
 */
export interface TextRule {
  readonly pattern: string;
  /** A pattern that the text must not contain. */
  readonly never?: string;
  readonly lengthMax?: number;
  /** Whether an IPv6 address must be in canonical form (RFC 5952), which no pattern can express. */
  readonly canonicalIpv6?: true;
  /** The whole rule, where patterns can say only a part of it. It accepts nothing that they refuse. */
  readonly accepts?: (value: string) => boolean;
}

/** A rule with the accepted texts in words, for messages. */
export interface DescribedRule extends TextRule {
  readonly allowed: string;
}

/** A function that checks whether a text satisfies a rule. */
export function accepting(rule: TextRule): (value: string) => boolean {
  if (rule.accepts !== undefined) return rule.accepts;
  const { lengthMax = Infinity } = rule;
  const pattern = new RegExp(rule.pattern);
  const never = rule.never === undefined ? undefined : new RegExp(rule.never);
  return (value) =>
    value.length <= lengthMax && pattern.test(value) && (never === undefined || !never.test(value));
}

const OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
export const IPV4_PATTERN = `(?:${OCTET}(?:\\.${OCTET}){3})`;

/** An IPv6 address (RFC 3986, 3.2.2) whose hexadecimal digits are of `digits`. */
function ipv6Pattern(digits: string): string {
  const group = `[${digits}]{1,4}`;
  const last = `(?:${group}:${group}|${IPV4_PATTERN})`;
  // Seven groups or fewer are around `::`: up to `left` before it, and seven less `left` after it.
  const short = [0, 1, 2, 3, 4, 5].map((left) => {
    const before = left === 0 ? "" : `(?:${group}(?::${group}){0,${left - 1}})?`;
    return `${before}::${5 - left === 0 ? "" : `(?:${group}:){${5 - left}}`}${last}`;
  });
  const ends = [`(?:${group}(?::${group}){0,5})?::${group}`, `(?:${group}(?::${group}){0,6})?::`];
  return `(?:(?:${group}:){6}${last}|${[...short, ...ends].join("|")})`;
}

export const IPV6_PATTERN = ipv6Pattern("0-9A-Fa-f");
export const LOWER_IPV6_PATTERN = ipv6Pattern("0-9a-f");

export const PORT_PATTERN =
  "(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])";

const LABEL = "[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?";
// A name of digits alone would read as an address.
const NO_NUMBER = "(?:[0-9]*[a-z_](?:[a-z0-9_-]*[a-z0-9_])?|[0-9]+-[a-z0-9_-]*[a-z0-9_])";
/** A lower-case DNS name (RFC 1035; `_` is allowed as nginx allows it), but for its lengths. */
export const DOMAIN_NAME_PATTERN = `(?:(?:${LABEL}\\.)*${NO_NUMBER}(?:\\.${LABEL})*)`;
/** A label that is too long (RFC 1035, 2.3.4). */
export const LONG_LABEL_PATTERN = "[a-z0-9_-]{64}";
export const DOMAIN_NAME_LENGTH_MAX = 253;

/** An absolute path in normal form: no `//`, `.` or `..` segments, no control characters. */
export const FILE_PATH: TextRule = {
  pattern: "^/[^\\x00-\\x1f\\x7f]*$",
  never: "//|/\\.\\.?(?:/|$)",
};

/** True for an absolute path in normal form. */
export const isFilePath = accepting(FILE_PATH);
