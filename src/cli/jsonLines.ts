/**
 * Lines of a JSON document, which is valid: a function that gives the line of a path such as `listeners[0].port`, counted
 * from 1. For a field that is left out, it is the line of what would contain it.
 */
export function linesOfJson(text: string): (place: string) => number {
  const lines = new Map<string, number>();
  const open: { readonly path: string; readonly isList: boolean; key: string; next: number }[] = [];
  let line = 1;
  let isKey = false;
  for (const [token] of text.matchAll(TOKEN)) {
    const inner = open.at(-1);
    if (token === "\n") line++;
    else if (token === "}" || token === "]") open.pop();
    else if (token === ",") isKey = inner?.isList === false;
    else if (isKey && token.startsWith('"')) {
      inner!.key = JSON.parse(token) as string;
      isKey = false;
    } else if (token !== ":") {
      const at =
        inner === undefined
          ? ""
          : inner.isList
            ? `${inner.path}[${inner.next++}]`
            : dotted(inner.path, inner.key);
      if (!lines.has(at)) lines.set(at, line);
      isKey = token === "{";
      if (token === "{" || token === "[") open.push({ path: at, isList: token === "[", key: "", next: 0 });
    }
  }
  return (place) => {
    for (let at = place; at !== ""; at = at.slice(0, Math.max(at.lastIndexOf("."), at.lastIndexOf("["), 0))) {
      const found = lines.get(at);
      if (found !== undefined) return found;
    }
    return 1;
  };
}

const dotted = (path: string, key: string): string => (path === "" ? key : `${path}.${key}`);

/** A text, a line's end, punctuation, or a number or word. */
const TOKEN = /"(?:[^"\\]|\\.)*"|\n|[{}[\]:,]|[^\s{}[\]:,"]+/g;
