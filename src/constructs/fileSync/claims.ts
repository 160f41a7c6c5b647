import type { IConstruct } from "constructs";
import { type Problem, problem, type SettingsFile } from "../../model/index.js";
import { isKnown } from "../props/tokens.js";
import type { VirtualServer } from "../virtualServer.js";
import type { AnyFrontEndProps } from "./frontEndProps.js";

/** Names and paths of the application that nothing else in the stack may take. */

/** @internal Virtual servers with a name of the application, which would get its requests. */
export function takenNameProblems(frontEnd: {
  readonly application: VirtualServer;
  readonly serverNames: readonly string[];
  readonly proxy: IConstruct & { readonly virtualServers: readonly VirtualServer[] };
}): Problem[] {
  const { application, serverNames } = frontEnd;
  const rivals = frontEnd.proxy.virtualServers.filter(
    (server) =>
      server !== application &&
      server.listeners.some(({ name }) => application.listeners.some((own) => own.name === name)),
  );
  return rivals.flatMap((server) =>
    server.serverNames.flatMap((name, i) => {
      if (!isKnown(name) || !serverNames.includes(name)) return [];
      const message = `is a name of the application: requests for it would no longer reach ${application.node.path}`;
      const fix = "Add the routes to the virtual server of the application, or use another server name.";
      const more = { received: name, allowed: "server names that the application does not have", fix };
      return [
        problem("config.duplicate-server-name", `${server.node.path}.serverNames[${i}]`, message, more),
      ];
    }),
  );
}

/** @internal Files and directories of the application that have its secrets. */
export const secretPlaces = (
  { installDirectory }: Pick<AnyFrontEndProps, "installDirectory">,
  files: readonly SettingsFile[] = [],
): string[] => [
  ...(installDirectory === undefined ? [] : [installDirectory]),
  ...files.map(({ path }) => path),
];
