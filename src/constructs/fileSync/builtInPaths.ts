import { Aspects } from "cdktf";
import type { ApplicationDefinition } from "../../applications/index.js";
import { type NormalisedPath, RouteTable } from "../../model/serving.js";
import type { Route } from "../route.js";
import type { IVirtualServer } from "../virtualServer.js";
import { warn } from "../warn.js";

/**
 * Warns, when the app is synthesized, where a path that the application's clients have built in does not lead where the
 * application has it: checks ask for the paths of the stack, so they pass while every such client fails.
 */
export function warnOfBuiltInPaths(server: IVirtualServer, { clients, title }: ApplicationDefinition): void {
  const paths = clients.builtIn ?? [];
  const original = paths.map((path) => routeOf(server, path));
  let warned = false;
  Aspects.of(server).add({
    visit: (node) => {
      if (node !== server || warned) return;
      warned = true;
      for (const [i, path] of paths.entries()) {
        const now = routeOf(server, path);
        // A route at this very path was added for these clients.
        if (now !== undefined && (now === original[i] || now.path === path)) continue;
        const leads =
          now === undefined ? "no route serves this path" : `the route ${now.name} serves this path`;
        warn(
          server,
          `Clients of ${title} have the path ${path} built in, but ${leads}, so the clients will fail: add a route for ${path}.`,
        );
      }
    },
  });
}

function routeOf(server: IVirtualServer, asked: string): Route | undefined {
  const table = new RouteTable(
    server.routes.map((route) => ({ match: "segment" as const, ...route.render(), route })),
  );
  return table.find(asked as NormalisedPath)?.route;
}
