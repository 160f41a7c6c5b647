import { Construct } from "constructs";
import type { VirtualServerInput } from "../model/index.js";
import { refuseVirtualServer } from "./props/checks.js";
import { LISTENER } from "./props/instances.js";
import type { Listener } from "./listener.js";
import {
  any,
  flag,
  judged,
  listOf,
  type PropTable,
  refuseId,
  refuseProps,
  required,
} from "./props/propTable.js";
import { proxyOf } from "./proxyScope.js";
import { Route, type RouteProps } from "./route.js";

/** A set of server names on listeners, with routes. Its scope is the proxy, or a construct below it. */
export class VirtualServer extends Construct {
  /** Name in the config. */
  readonly name: string;
  /** Names that clients ask for, the main one first. */
  readonly serverNames: readonly string[];
  /** Listeners that it is reached through. */
  readonly listeners: readonly Listener[];
  private readonly props: VirtualServerProps;

  constructor(scope: Construct, id: string, props: VirtualServerProps) {
    super(scope, id);
    refuseProps(this, props, VIRTUAL_SERVER_PROPS);
    proxyOf(this);
    this.props = props;
    this.name = props.name ?? id;
    this.serverNames = props.serverNames;
    this.listeners = props.listeners;
    refuseVirtualServer(this, this.render());
  }

  /** Adds a route and returns it. */
  addRoute(id: string, props: RouteProps): Route {
    refuseId(this, "addRoute", id);
    return new Route(this, id, props);
  }

  /** Routes below this server, in the order they were added. */
  get routes(): readonly Route[] {
    return this.node.findAll().filter((child) => child instanceof Route);
  }

  /** @internal Its section of the config. */
  render(): VirtualServerInput {
    return {
      ...this.props,
      name: this.name,
      listeners: this.listeners.map((listener) => listener.name),
      routes: this.routes.map((route) => route.render()),
    };
  }
}

/** Names and listeners of a virtual server. */
export interface VirtualServerProps {
  /**
   * Names, in lower case and without ports: domain names, IPv4 addresses, canonical IPv6 addresses without
   * brackets, or `_`, which no client asks for. Each may be given only once on a listener
   * (`config.duplicate-server-name`).
   */
  readonly serverNames: readonly string[];
  /** Listeners that it is reached through; at least one. */
  readonly listeners: readonly Listener[];
  /**
   * Whether it answers for unknown names on its listeners. Each listener needs exactly one such server
   * (`config.no-default-server`, `config.duplicate-default-server`).
   * @default false
   */
  readonly default?: boolean;
  /**
   * Whether its `Server` header contains the version. By this, checks distinguish the default server, which
   * shows it, from the application's, which does not.
   * @default false
   */
  readonly versionTokens?: boolean;
  /**
   * Name in the config: letters, digits, `-`, `_`, `.`.
   * @default - the construct's id
   */
  readonly name?: string;
}

const VIRTUAL_SERVER_PROPS: PropTable<VirtualServerProps> = {
  serverNames: judged,
  listeners: required(listOf(LISTENER)),
  default: flag,
  versionTokens: flag,
  name: any,
};
