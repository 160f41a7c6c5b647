import { isIPv6 } from "node:net";
import { printableValue } from "../../model/text/printable.js";
import type { DatabaseAccess, Override, Overrides } from "../applicationSettings/index.js";
import type { StoredItem } from "../../model/index.js";
import type { CheckedResponse } from "./expected/liveCheck.js";

/** A row for each item: a value in the database takes priority over the files (service 2.2), so it has to be the same. */
export function judgeOverrides(
  overrides: Overrides,
  items: ReadonlyMap<string, StoredItem>,
  access: DatabaseAccess,
): CheckedResponse[] {
  if (!overrides.looked) return [];
  const request = `database ${describeDatabase(access)}`;
  return [...items].map(([item, { wanted }]) => {
    const stored = overrides.overrides.find((o) => o.item === item)?.stored;
    const base = { name: `stored ${item}`, request, expected: `nothing, or ${wanted}` };
    if (stored === undefined) return { ...base, pass: true, seen: "nothing" };
    const seen = shownValue(stored);
    const pass = isWanted(stored, wanted);
    return pass ? { ...base, pass, seen } : { ...base, pass, seen, cause: CAUSE };
  });
}

const CAUSE =
  "a value stored in the application's database takes priority over the config files: correct it in the web interface, or delete it in the database";

/** The application joins paths to a URL and accepts a slash at its end. */
export const isWanted = (stored: Override["stored"], wanted: string): boolean =>
  stored.kind === "text" && stored.text.replace(/\/$/, "") === wanted;

/** A stored value in a message. */
export const shownValue = (stored: Override["stored"]): string =>
  stored.kind === "text" ? printableValue(stored.text) : "a value that cannot be read";

/** `user@host:port/name`, without a password. */
function describeDatabase({ user, host, port, name }: DatabaseAccess): string {
  return `${user}@${isIPv6(host) ? `[${host}]` : host}:${port}/${name}`;
}
