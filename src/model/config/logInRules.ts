import { isPlain, otherReadings } from "../access/readings.js";
import type { NormalisedPath } from "../net/target.js";
import type { LogInConfig } from "./guardChecks.js";

/** A request, as far as it tells whether it logs in. */
interface AskedPath {
  readonly method: string;
  /** Origin-form, as the client sent it. */
  readonly target: string;
  readonly path: NormalisedPath;
}

/** The log-ins of a virtual server, by their requests. */
export class LogInRules {
  private readonly rules: readonly ReadRule[];

  constructor(logIns: readonly LogInConfig[]) {
    this.rules = logIns.map((rule) => ({ rule, path: folded(rule.path), below: `${folded(rule.path)}/` }));
  }

  /** The first rule for each place of a secret that a request is one of, however a server reads the path. */
  of({ method, target, path }: AskedPath): readonly LogInConfig[] {
    const found: LogInConfig[] = [];
    let paths: readonly string[] | undefined = [folded(path)];
    if (!isPlain(target, path)) {
      const others = otherReadings(target);
      paths = others && [...paths, ...others.map(folded)];
    }
    for (const one of this.rules) {
      const { rule } = one;
      if (rule.method !== undefined && rule.method !== method) continue;
      if (found.some(({ secret }) => secret === rule.secret)) continue;
      // A path that is too long to tell may be any.
      if (paths === undefined || paths.some((read) => matches(one, read))) found.push(rule);
    }
    return found;
  }
}

interface ReadRule {
  readonly rule: LogInConfig;
  readonly path: string;
  readonly below: string;
}

const matches = ({ rule, path, below }: ReadRule, read: string): boolean =>
  read === path || (rule.match === "segment" && read.startsWith(below));

/** Servers differ in case, and in the slash at the end. */
function folded(path: string): string {
  let end = path.length;
  while (path[end - 1] === "/") end -= 1;
  return path.slice(0, end).toLowerCase();
}
