import { isIPv6 } from "node:net";
import { printableValue } from "../model/printable.js";
import type { DatabaseAccess, OverridableItem, Overrides } from "../applicationSettings/index.js";
import type { CheckedResponse } from "./liveCheck.js";

/** What SERVICE_URL and FILE_SERVER_ROOT should be; undefined if that is not known. */
export type WantedUrls = Readonly<Record<OverridableItem, string | undefined>>;

/**
 * One row for each of the two items: a value in the database takes priority over the config files (service 2.2), so it
 * has to be the same.
 */
export function judgeOverrides(
  overrides: Overrides,
  wanted: WantedUrls,
  access: DatabaseAccess,
): CheckedResponse[] {
  if (!overrides.looked) return [];
  const request = `database ${describeDatabase(access)}`;
  return (Object.keys(wanted) as OverridableItem[]).map((item) => {
    const stored = overrides.overrides.find((o) => o.item === item)?.stored;
    const url = wanted[item];
    const base = {
      name: `stored ${item}`,
      request,
      expected: url === undefined ? "nothing" : `nothing, or ${url}`,
    };
    if (stored === undefined) return { ...base, pass: true, seen: "nothing" };
    const seen = stored.kind === "text" ? printableValue(stored.text) : "a value that cannot be read";
    const pass = stored.kind === "text" && withoutSlash(stored.text) === url;
    return pass ? { ...base, pass, seen } : { ...base, pass, seen, cause: CAUSE };
  });
}

const CAUSE =
  "a value stored in the application's database takes priority over the config files: correct it in the web interface, or remove it from the table constance_config";

/** The application joins paths to it and accepts a slash at the end. */
function withoutSlash(url: string): string {
  return url.replace(/\/$/, "");
}

/** `user@host:port/name`, without a password. */
function describeDatabase({ user, host, port, name }: DatabaseAccess): string {
  return `${user}@${isIPv6(host) ? `[${host}]` : host}:${port}/${name}`;
}
