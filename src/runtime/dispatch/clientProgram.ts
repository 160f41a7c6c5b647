/**
 * A client's program in a few words, by what it says of itself: browsers by name and major version, others by the first
 * word of the field. Whatever a client writes there, only plain ASCII comes out, 40 characters at most.
 */
export function plainName(userAgent: string): string {
  const text = userAgent.slice(0, FIELD_CHARACTERS_MAX);
  if (text.startsWith("Mozilla/")) {
    for (const [name, mark] of BROWSERS) {
      const version = versionAfter(text, mark);
      if (version !== undefined) return `${name} ${version}`;
    }
  }
  const [first = ""] = text.split(/[ (;]/, 1);
  const plain = first.replace(/[^\w./+-]/g, "");
  return plain.length > NAME_CHARACTERS_MAX ? `${plain.slice(0, NAME_CHARACTERS_MAX - 1)}…` : plain;
}

const FIELD_CHARACTERS_MAX = 512;
const NAME_CHARACTERS_MAX = 40;

/** Each calls itself by the names of those before it in history: the newest name counts. */
const BROWSERS = [
  ["Edge", "Edg/"],
  ["Opera", "OPR/"],
  ["Firefox", "Firefox/"],
  ["Chrome", "Chrome/"],
  ["Chrome", "CriOS/"],
  ["Firefox", "FxiOS/"],
  ["Safari", "Version/"],
] as const;

/** The digits that follow a mark. */
function versionAfter(text: string, mark: string): string | undefined {
  const at = text.indexOf(mark);
  if (at === -1) return undefined;
  return /^\d{1,6}/.exec(text.slice(at + mark.length, at + mark.length + 6))?.[0];
}
