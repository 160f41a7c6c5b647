import type { IConstruct } from "constructs";
import type { Problem } from "../model/index.js";

/** The parts of a proxy in the order of its config. */
interface Parts extends IConstruct {
  readonly listeners: readonly IConstruct[];
  readonly upstreams: readonly IConstruct[];
  readonly virtualServers: readonly (IConstruct & { readonly routes: readonly IConstruct[] })[];
}

/**
 * A problem of a config with construct paths in place of the config's indexes: `virtualServers[2].routes[5]` means
 * nothing to the author of a stack.
 */
export function atConstructs(problem: Problem, proxy: Parts): Problem {
  const named = (text: string): string =>
    text.replace(
      PART,
      (index, kind: "listeners" | "upstreams" | "virtualServers", at: string, route?: string) => {
        const part = proxy[kind][Number(at)];
        const child = route === undefined ? part : proxy.virtualServers[Number(at)]?.routes[Number(route)];
        return child?.node.path ?? index;
      },
    );
  const server = /virtualServers\[.*?\]/.exec(problem.path)?.[0];
  // A message about routes is about those of the same server.
  const whole = (text: string): string =>
    named(server === undefined ? text : text.replace(/(?<![.\w])routes\[/g, `${server}.routes[`));
  const path = named(problem.path);
  return {
    ...problem,
    path: path === problem.path ? `${proxy.node.path}${path === "" ? "" : "."}${path}` : path,
    message: whole(problem.message),
    ...(problem.allowed === undefined ? {} : { allowed: whole(problem.allowed) }),
  };
}

/** Of a server's own `listeners[0]` the index stays: it is that of a prop. */
const PART = /(?<![.\w])(listeners|upstreams|virtualServers)\[(.*?)\](?:\.routes\[(.*?)\])?/g;
