import { endOfPath, type NormalisedPath } from "../net/target.js";

/**
 * Applications differ in how they read a path. The proxy routes by one reading and forwards the path as it came, so a
 * server behind it may take another path for a closed one: `/x/..;/admin` is `/admin` for Tomcat, `/ADMIN` and `/admin.`
 * are for Windows, and `/admin/../x` is below `/admin` for a program that resolves no dots.
 */

/** Longer odd paths are not read in other ways. */
const ODD_LENGTH_MAX = 2_048;

/** Paths that have one reading only, but for case. */
const PLAIN = /^(?:\/\.?[^./\\;% ]+(?:[. ]+[^./\\;% ]+)*)*\/?$/;

/** Whether the path may have other readings than the proxy's own one. */
export const isPlain = (target: string, path: NormalisedPath): boolean =>
  target.startsWith(path) && endOfPath(target) === path.length && PLAIN.test(path);

/**
 * The ways in which servers may read the path of a target, without that of the proxy; undefined if it is too long to
 * tell.
 */
export function otherReadings(target: string): readonly string[] | undefined {
  const end = endOfPath(target);
  const literal = decoded(target.slice(0, end));
  const again = decoded(literal);
  const odd = ODDITIES.filter(([sign]) => sign.test(literal) || sign.test(again)).map(([, read]) => read);
  if (odd.length > 0 && end > ODD_LENGTH_MAX) return undefined;
  const readings = new Set<string>();
  // Each server has some of these habits: every combination is a reading.
  for (let habits = 0; habits < 1 << odd.length; habits++) {
    let path = literal;
    for (const [i, read] of odd.entries()) if ((habits & (1 << i)) !== 0) path = read(path);
    readings.add(path.replace(/\/{2,}/g, "/")).add(resolved(path));
  }
  return [...readings];
}

/** Habits of servers, and what a path must have for them to matter. */
const ODDITIES: readonly (readonly [sign: RegExp, read: (path: string) => string])[] = [
  // Behind another proxy that decodes as well.
  [/%/, (path) => decoded(path)],
  [/\\/, (path) => path.replaceAll("\\", "/")],
  // Parameters of segments (RFC 3986, 3.3).
  [/;/, (path) => path.replace(/;[^/]*/g, "")],
  // Windows' names of files.
  [/[. ](?:[\\/;]|$)/, (path) => path.replace(/(\/\.\.?) +(?=\/|$)|([^./\\ ])[. ]+(?=\/|$)/g, "$1$2")],
];

/** Decodes to one char a byte; an escape that is not proper stays. */
const decoded = (path: string): string =>
  path.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));

/** Removes empty and dot segments; a path that climbs above the root stays at the root. */
function resolved(path: string): string {
  const kept: string[] = [];
  const segments = path.split("/");
  for (const segment of segments) {
    if (segment === "..") kept.pop();
    else if (segment !== "" && segment !== ".") kept.push(segment);
  }
  const last = segments.at(-1)!;
  const isDirectory = kept.length > 0 && (last === "" || last === "." || last === "..");
  return `/${kept.join("/")}${isDirectory ? "/" : ""}`;
}
