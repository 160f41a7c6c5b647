import { pythonLiteral } from "../render/index.js";
import type { ListElement } from "./python/literal.js";
import type { Token } from "./python/tokens.js";
import type { Splice } from "./textEdit.js";

/**
 * Removes elements from a list of strings and adds others after the last one that stays; everything between the others,
 * comments included, stays as it is.
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
  const begin = list[0]!.to;
  const at = lastKept?.to ?? begin;
  const literals = added.map(pythonLiteral).join(", ");
  const insertion =
    added.length === 0
      ? []
      : [{ from: at, to: at, text: lastKept === undefined ? literals : `, ${literals}` }];
  if (lastKept === undefined && elements.length > 0) {
    const end = elements.at(-1)!.to;
    return [...insertion, { from: elements[0]!.from, to: endWithComma(text, end), text: "" }];
  }
  const firstKept = stays.indexOf(true);
  const cuts = elements.flatMap((element, i) => {
    if (stays[i]) return [];
    // Those before the first that stays are removed together.
    if (i < firstKept)
      return i === 0 ? [{ from: element.from, to: elements[firstKept]!.from, text: "" }] : [];
    return [cutOf(text, elements[i - 1]!, element)];
  });
  return [...insertion, ...cuts];
}

/**
 * What is removed with an element: the comma before it if they share a line, otherwise its own comma and an empty line.
 */
function cutOf(text: string, previous: ListElement, { from, to }: ListElement): Splice {
  if (/^[ \t]*,[ \t]*$/.test(text.slice(previous.to, from))) return { from: previous.to, to, text: "" };
  const end = endWithComma(text, to);
  const lead = /[ \t]*$/.exec(text.slice(0, from))![0].length;
  const rest = /^[ \t]*(?:\r\n|\n|\r)/.exec(text.slice(end));
  const alone = rest !== null && /(?:^|[\r\n])$/.test(text.slice(0, from - lead));
  return alone ? { from: from - lead, to: end + rest[0].length, text: "" } : { from, to: end, text: "" };
}

function endWithComma(text: string, to: number): number {
  return to + (/^[ \t]*,/.exec(text.slice(to))?.[0].length ?? 0);
}
