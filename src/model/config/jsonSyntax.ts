/**
 * What is wrong with a text that is no JSON, on one line, with its line and column. Engines say an offset, line and
 * column, or, for an unexpected token, a piece of the text around it, which may be several lines and hold a secret.
 */
export function syntaxErrorIn(text: string, message: string): string {
  if (message.startsWith(TOKEN)) {
    const quote = message.indexOf("'", TOKEN.length + 2);
    return `${message.slice(0, quote + 1)}${placeOf(text, tokenOffset(text))}`;
  }
  if (message === "Unexpected end of JSON input") return `${message}${placeOf(text, text.length)}`;
  const offset = / at position (\d+)$/.exec(message);
  return offset === null ? message : `${message}${placeOf(text, Number(offset[1]))}`;
}

const TOKEN = "Unexpected token ";

function placeOf(text: string, offset: number): string {
  const before = text.slice(0, offset).split("\n");
  return ` (line ${before.length} column ${before.at(-1)!.length + 1})`;
}

/** Every beginning of the text that has the token fails by it, and no shorter one does. */
function tokenOffset(text: string): number {
  let [without, having] = [0, text.length];
  while (having - without > 1) {
    const middle = Math.floor((without + having) / 2);
    if (failsByToken(text.slice(0, middle))) having = middle;
    else without = middle;
  }
  return without;
}

function failsByToken(text: string): boolean {
  try {
    JSON.parse(text);
    return false;
  } catch (error) {
    return (error as Error).message.startsWith(TOKEN);
  }
}
