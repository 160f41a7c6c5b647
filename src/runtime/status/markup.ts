import { printableValue } from "../../model/text/printable.js";

/** A piece of HTML or SVG. Only {@link markup} makes one, so a text can get into a page in no other way than escaped. */
export class Markup {
  constructor(readonly text: string) {}
}

type MarkupValue = Markup | string | number | undefined | false | readonly MarkupValue[];

/** Markup from a template: its literals as they are, its values as text. Nothing comes of `undefined` and `false`. */
export function markup(literals: TemplateStringsArray, ...values: readonly MarkupValue[]): Markup {
  let text = literals[0]!;
  for (const [i, value] of values.entries()) text += rendered(value) + literals[i + 1]!;
  return new Markup(text);
}

function rendered(value: MarkupValue): string {
  if (value === undefined || value === false) return "";
  if (value instanceof Markup) return value.text;
  if (typeof value === "number") return String(value);
  return typeof value === "string" ? escaped(value) : value.map(rendered).join("");
}

/** Escapes text for content and quoted attributes alike; controls and marks of direction are shown by their codes. */
const escaped = (text: string): string =>
  printableValue(text).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
