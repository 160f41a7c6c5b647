import { type Problem, problem } from "../../model/index.js";
import { accepting } from "../../model/text/textRule.js";
import {
  APPLICATION_PATH,
  type FileSyncPaths,
  fileSyncPaths,
  PATH_PREFIX,
} from "../../applications/index.js";
import { type PathOf, fields, text } from "../props/propTable.js";
import { isKnown } from "../props/tokens.js";

/** Props that say which paths the application's routes have. */

/** @internal */
export const ROUTE_PATHS = fields<Partial<FileSyncPaths>>({
  web: text,
  fileServer: text,
  webdav: text,
  media: text,
});

/** Paths of the application's routes. */
export interface FileSyncPathProps {
  /**
   * The word at the beginning of the paths: with `sync`, `/sync`, `/synchttp`, `/syncmedia`, `/syncdav`. Paths may be
   * built into sync clients: those of Seafile request `/seafhttp`, which needs the prefix `seaf` or `routePaths`.
   * @default "sync"
   */
  readonly pathPrefix?: string;
  /**
   * Paths by route, for paths that do not follow from the prefix: `{ fileServer: "/seafhttp", webdav: "/seafdav" }`.
   * Known at synthesis.
   * @default - none
   */
  readonly routePaths?: Partial<FileSyncPaths>;
}

/** @internal */
export const pathProblems = (props: FileSyncPathProps, at: PathOf): Problem[] => [
  ...prefixProblems(props, at),
  ...routePathProblems(props, at),
];

const LITERAL = "Use a literal: the routes of the application are made from it.";

function prefixProblems({ pathPrefix = "sync" }: FileSyncPathProps, at: PathOf): Problem[] {
  if (isPathPrefix(pathPrefix)) return [];
  if (!isKnown(pathPrefix)) {
    const more = { allowed: PATH_PREFIX.allowed, fix: LITERAL };
    return [problem("config.bad-route-path", at("pathPrefix"), "is not known at synthesis", more)];
  }
  const bare = pathPrefix.replace(/^\/+|\/+$/g, "");
  const fix = `Use the word alone, without slashes${/^[\w-]+$/.test(bare) ? `: ${JSON.stringify(bare)}` : ""}.`;
  const more = { received: pathPrefix, allowed: PATH_PREFIX.allowed, fix };
  return [problem("config.bad-route-path", at("pathPrefix"), "is not one word", more)];
}

const isPathPrefix = accepting(PATH_PREFIX);

function routePathProblems({ pathPrefix, routePaths = {} }: FileSyncPathProps, at: PathOf): Problem[] {
  const all = Object.entries(fileSyncPaths(pathPrefix, routePaths));
  return Object.entries(routePaths).flatMap(([route, path]) => {
    if (path === undefined) return [];
    const [taken] = all.find(([other, same]) => other !== route && same === path) ?? [];
    if (taken !== undefined) {
      const fix = "Use a different path for each route.";
      const message = `is also the path of ${taken}`;
      return [problem("config.duplicate-name", at(`routePaths.${route}`), message, { received: path, fix })];
    }
    if (accepting(APPLICATION_PATH)(path)) return [];
    const unknown = !isKnown(path);
    const message = unknown ? "is not known at synthesis" : `is not ${APPLICATION_PATH.allowed}`;
    const more = { ...(unknown ? { fix: LITERAL } : { received: path }), allowed: APPLICATION_PATH.allowed };
    return [problem("config.bad-route-path", at(`routePaths.${route}`), message, more)];
  });
}
