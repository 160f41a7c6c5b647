import { pythonLiteral } from "../../render/index.js";
import type { ListElement } from "./python/literal.js";
import type { Token } from "./python/tokens.js";
import type { Splice } from "./textEdit.js";

/**
 * Removes elements from a list of strings and adds others after the last remaining one; text between remaining
 * elements, including comments, stays as it is.
 *
 * @param list its tokens, brackets included
 */
export function editList(
  text: string,
  list: readonly Token[],
  elements: readonly ListElement[],
  removed: readonly string[],
  added: readonly string[],
): Splice[] {
  const stays = elements.map(({ value }) => !removed.includes(value));
  const lastKept = elements.findLast((_, i) => stays[i]);
  const at = (lastKept ?? list[0]!).to;
  const literals = added.map(pythonLiteral).join(", ");
  const insertion =
    added.length === 0
      ? []
      : [{ from: at, to: at, text: lastKept === undefined ? literals : `, ${literals}` }];
  const commas = list.filter((token) => token.text === ",");
  let passed = 0;
  const cuts = elements.flatMap(({ from }, i) => {
    // Neighbours are removed together, so that exactly one comma goes with each.
    if (stays[i] || (i > 0 && !stays[i - 1])) return [];
    const next = stays.indexOf(true, i);
    if (i === 0 && next !== -1) return [{ from, to: elements[next]!.from, text: "" }];
    const last = elements.at(next === -1 ? -1 : next - 1)!;
    while (passed < commas.length && commas[passed]!.from < last.to) passed++;
    return [cutOf(text, elements[i - 1], { from, to: last.to }, (commas[passed] ?? last).to)];
  });
  return [...insertion, ...cuts];
}

/**
 * The range to remove with elements: the comma before them if they begin on the line of the previous element, otherwise
 * the comma after them, and their lines if nothing else is on these.
 */
function cutOf(
  text: string,
  previous: ListElement | undefined,
  { from, to }: Pick<ListElement, "from" | "to">,
  end: number,
): Splice {
  if (previous === undefined) return { from, to: end, text: "" };
  if (/^[ \t]*,[ \t]*$/.test(text.slice(previous.to, from))) return { from: previous.to, to, text: "" };
  let begin = from;
  while (text[begin - 1] === " " || text[begin - 1] === "\t") begin--;
  const rest = /^[ \t]*(?:\r\n|\n|\r)/.exec(text.slice(end));
  const alone = rest !== null && /[\r\n]/.test(text[begin - 1]!);
  return alone ? { from: begin, to: end + rest[0].length, text: "" } : { from, to: end, text: "" };
}
