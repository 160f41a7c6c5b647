/** Blanks around the parts of a field's value: spaces and tabs (OWS, RFC 9110, 5.6.3). Nothing here makes a text. */

export const isBlank = (code: number): boolean => code === 0x20 || code === 0x09;

/** The first index from `at` on that has no blank. */
export function afterBlanks(text: string, at: number): number {
  // Beyond the end, `charCodeAt` is not a whole number, for which V8 makes slower code.
  while (at < text.length && isBlank(text.charCodeAt(at))) at++;
  return at;
}

/** Whether there are only blanks between an index and the delimiter before it, or the beginning of the text. */
export function beginsPart(text: string, at: number, delimiter: number): boolean {
  while (at > 0 && isBlank(text.charCodeAt(at - 1))) at--;
  return at === 0 || text.charCodeAt(at - 1) === delimiter;
}

/** The part from `from` to `to` without the blanks at its ends. */
export function withoutBlanks(text: string, from: number, to: number): string {
  const begin = Math.min(afterBlanks(text, from), to);
  while (to > begin && isBlank(text.charCodeAt(to - 1))) to--;
  return text.slice(begin, to);
}
