import type { Action, RouteRuntime } from "../exchange/exchange.js";
import { BlockList } from "node:net";
import { isIpv6 } from "../../model/serving.js";
import type { ProxyConfig, RouteConfig, UpstreamConfig } from "../../model/index.js";
import { ProxyAction } from "./proxy.js";
import { RedirectAction } from "./redirect.js";
import { RespondAction } from "./respond.js";
import { StaticFilesAction } from "./staticFiles.js";
import { Dispatcher } from "../exchange/dispatch.js";
import { Faults } from "../exchange/faults.js";
import type { LogFiles } from "../logs/logFiles.js";
import type { WorkerContext } from "../exchange/workerContext.js";
import { UpstreamPool } from "../upstream/pool.js";

/** A config made ready to serve: actions compiled, pools opened. One owner closes it. */
export interface CompiledRoutes extends WorkerContext {
  /** Closes idle upstream connections now and the others after their answers. */
  close(): void;
}

/** Builds everything that connections share, from a valid config and opened logs. */
export function compileRoutes(config: ProxyConfig, logs: LogFiles): CompiledRoutes {
  const faults = new Faults(logs.mainError);
  const pools = new Map(
    config.upstreams.map((upstream) => [upstream.name, new UpstreamPool(upstream, faults)]),
  );
  const routes = new Map<RouteConfig, RouteRuntime>();
  for (const server of config.virtualServers) {
    for (const route of server.routes) {
      const action = createAction(route, (name) => pools.get(name)!);
      const accessLog = logs.accessLogFor(route);
      routes.set(route, { config: route, server, action, accessLog, errorLog: logs.errorLogFor(route) });
    }
  }
  return {
    config,
    mainError: logs.mainError,
    faults,
    dispatcher: new Dispatcher(config, routes, logs.mainAccess),
    trusted: trustedProxies(config),
    close: () => pools.forEach((pool) => pool.close()),
  };
}

function createAction(route: RouteConfig, pool: (upstream: UpstreamConfig["name"]) => UpstreamPool): Action {
  const { action } = route;
  switch (action.type) {
    case "proxy":
      return new ProxyAction({ ...route, action }, pool(action.upstream));
    case "staticFiles":
      return new StaticFilesAction(route, action);
    case "redirect":
      return new RedirectAction(route, action);
    case "respond":
      return new RespondAction(route, action);
  }
}

/** Whether an address is one of `trustedProxies`; nobody is where the list is empty. */
function trustedProxies(config: ProxyConfig): (address: string) => boolean {
  // One list a family: in a common one, `::/0` would match every IPv4 address as well.
  const lists = { ipv4: new BlockList(), ipv6: new BlockList() };
  for (const range of config.trustedProxies) {
    const [address, length] = range.split("/") as [string, string?];
    const family = familyOf(address);
    if (length === undefined) lists[family].addAddress(address, family);
    else lists[family].addSubnet(address, Number(length), family);
  }
  return (address) => address !== "" && lists[familyOf(address)].check(address, familyOf(address));
}

const familyOf = (address: string): "ipv4" | "ipv6" => (isIpv6(address) ? "ipv6" : "ipv4");
