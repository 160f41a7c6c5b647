import { nearest } from "../text/nearest.js";
import { NOT_SUPPORTED, plainName, said } from "../text/notSupported.js";
import { type Place, places } from "./places.js";
import { LOCAL_SYNONYMS, type Synonym, SYNONYMS } from "../text/synonyms.js";

/** The names of an object's fields, and the same of the objects in its fields, as far as these are known. */
export interface Level {
  readonly names: readonly string[];
  inside?(name: string): Level | undefined;
}

/**
 * The fix for an unknown name: the alternative to an unsupported feature, the name that the field has here and where it
 * belongs, or the name that was probably meant.
 */
export function unknownNameFix(name: string, level: Level): { readonly fix?: string } {
  const wanted = plainName(name);
  const isWanted = (one: string): boolean => plainName(one) === wanted;
  const spelt = level.names.find(isWanted);
  if (spelt !== undefined) return { fix: `Did you mean \`${spelt}\`?` };
  const local = localFix(level, isWanted);
  if (local !== undefined) return { fix: local };
  const absent = NOT_SUPPORTED.find(
    ({ names, beside }) =>
      (beside === undefined || beside.some((field) => level.names.includes(field))) && names.some(isWanted),
  );
  if (absent !== undefined) return { fix: said(absent) };
  const reached = reachedFrom(level, name);
  if (reached !== undefined) return { fix: `Use \`${reached}\`.` };
  const synonym = SYNONYMS.find(({ names }) => names.some(isWanted));
  if (synonym !== undefined) return { fix: synonymFix(synonym, level) };
  const owners = places().filter(({ names }) => names.some(isWanted));
  const words = [...new Set(owners.map((place) => place.words))];
  const near = nearest(name, level.names);
  // A name of several objects, such as `path`, says little about what was meant.
  if (near !== undefined && words.length !== 1) return { fix: `Did you mean \`${near}\`?` };
  if (words.length === 0 || words.length > OWNERS_MAX) return {};
  const known = owners[0]!.names.find(isWanted)!;
  const place = words.join(" or ");
  return { fix: known === name ? `The field belongs to ${place}.` : `Use \`${known}\` of ${place}.` };
}

const OWNERS_MAX = 3;

/** The fix for a name that means a field in this kind of object only. */
function localFix(level: Level, isWanted: (name: string) => boolean): string | undefined {
  const { names = {}, notes = {} } = LOCAL_SYNONYMS.find(({ mark }) => level.names.includes(mark)) ?? {};
  const field = Object.keys(names).find((one) => names[one]!.some(isWanted));
  return field === undefined ? undefined : withNote(`Use \`${field}\`.`, notes[field]);
}

function synonymFix({ field, of, note, beside = {}, besideNote }: Synonym, level: Level): string {
  const prop = Object.keys(beside).find((name) => level.names.includes(name));
  if (prop !== undefined) return withNote(`Use \`${beside[prop]}\`.`, besideNote);
  const place = places().find(({ words }) => words === of)!;
  const way = wayTo(place, level);
  const use = way === undefined ? `Use \`${field}\` of ${of}.` : `Use \`${[...way, field].join(".")}\`.`;
  return withNote(use, note);
}

const withNote = (text: string, note: string | undefined): string =>
  note === undefined ? text : `${text} ${note}`;

/** The field of this name in an object of the level's. */
function reachedFrom(level: Level, name: string): string | undefined {
  for (const step of level.names)
    if (level.inside?.(step)?.names.includes(name) === true) return `${step}.${name}`;
  return undefined;
}

/** The fields that lead from the level to the place; empty if the level is the place. */
function wayTo(place: Place, level: Level): string[] | undefined {
  if (isAt(place, level)) return [];
  const inner = level.names.find((name) => {
    const inside = level.inside?.(name);
    return inside !== undefined && isAt(place, inside);
  });
  if (inner !== undefined) return [inner];
  const { within } = place;
  const way = within === undefined ? undefined : wayTo(within.place, level);
  return way === undefined ? undefined : [...way, within!.step];
}

/** Whether most names of the level are fields of the place: a construct's props are, without the fields that it sets. */
function isAt({ names }: Place, level: Level): boolean {
  const shared = level.names.filter((name) => names.includes(name)).length;
  return shared > level.names.length / 2 && shared > names.length / 4;
}
