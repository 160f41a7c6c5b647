/**
 * Fields that an object of a JSON text has more than once. `JSON.parse` uses the last one and says nothing; whoever reads
 * the text may see the first one (RFC 8259, 4).
 *
 * @param text JSON without syntax errors
 * @returns paths, each as long as the field is deep
 */
export function repeatedFields(text: string): readonly (readonly PropertyKey[])[] {
  const found: PropertyKey[][] = [];
  const within: Frame[] = [];
  for (const [token] of text.matchAll(TOKENS)) {
    const top = within.at(-1);
    if (token === "{") within.push({ at: "", names: new Set(), awaitsName: true });
    else if (token === "[") within.push({ at: 0, names: undefined, awaitsName: false });
    else if (token === "}" || token === "]") within.pop();
    else if (token === ",") next(top!);
    else if (top?.awaitsName === true) {
      top.at = JSON.parse(token) as string;
      top.awaitsName = false;
      if (top.names!.has(top.at)) found.push(within.map(({ at }) => at));
      top.names!.add(top.at);
    }
  }
  return found;
}

/** An object or array that is not over. */
interface Frame {
  /** Name or index of the present item. */
  at: string | number;
  /** Undefined for an array. */
  readonly names: Set<string> | undefined;
  awaitsName: boolean;
}

/** Strings, and what separates; numbers and words in between are of no interest. */
const TOKENS = /"(?:[^"\\]|\\.)*"|[{}[\],]/g;

function next(frame: Frame): void {
  if (typeof frame.at === "number") frame.at++;
  else frame.awaitsName = true;
}
