import { clientPort, endpoint, isLoopback, type ListenerConfig, type ProxyConfig } from "../model/index.js";
import { printableValue } from "../model/text/printable.js";
import { certificatesOf, conditionsOf, policyOf } from "../model/review/accessChanges.js";
import { ANY_NAME, OTHER_NAME, Reach, type WayIn, writesOf } from "../model/review/ways.js";
import type { AllowedPort } from "./nftables.js";

/** The clients that a packet filter lets through to the ports of listeners. */
export interface Openings {
  /** Open TCP ports. */
  readonly ports: readonly number[];
  /** Addresses that may reach `ports`; everyone without this list. */
  readonly from?: readonly string[];
  /** Further ports, some of them only for certain addresses. */
  readonly allowed: readonly AllowedPort[];
}

/**
 * All reachable paths, with their clients and targets: a line for each path, sorted by port. Names that only the config
 * itself uses are left out, so that the table changes only when something changes for clients.
 *
 * @param openings of the firewall; undefined where none is known
 */
export function routesTable(config: ProxyConfig, openings: Openings | undefined): string {
  const rows = [
    ...new Reach(config).ways.map((way) => rowOf(config, way, openings)),
    ...healthRows(config, openings),
    ...metricsRows(config, openings),
  ];
  rows.sort((a, b) => compare(a.sorted, b.sorted));
  const cells = rows.map((row) => row.cells.map(printableValue));
  const widths = HEAD.map((head, i) => Math.max(head.length, ...cells.map((row) => row[i]!.length)));
  const line = (row: readonly string[]): string => row.map((cell, i) => cell.padEnd(widths[i]!)).join("  ");
  return [...facts(config), "", ...[HEAD, ...cells].map((row) => line(row).trimEnd())].join("\n") + "\n";
}

const HEAD = ["SCHEME", "AT", "NAMES", "PATH", "MATCH", "LEADS TO", "WHO", "WRITES"];

interface TableRow {
  readonly cells: readonly string[];
  /** The sort key: numbers by value, texts by code unit, so that no locale changes the order. */
  readonly sorted: readonly (number | string)[];
}

/** Facts that apply to every line. */
function facts({ trustedProxies, clientAddressField, maintenance }: ProxyConfig): string[] {
  const trusted = trustedProxies.length === 0 ? "none" : `${list(trustedProxies)} (${clientAddressField})`;
  return [
    `trusted proxies: ${trusted}`,
    `served during maintenance: ${maintenance.allow.length === 0 ? "no client" : list(maintenance.allow)}`,
  ];
}

const list = (ranges: readonly string[]): string => [...ranges].sort().join(", ");

function rowOf(config: ProxyConfig, way: WayIn, openings: Openings | undefined): TableRow {
  const { listener, names, route, lead } = way;
  const { path, match } = route;
  const writes = { nothing: "-", byMethod: "by method", always: "always" }[writesOf(route)];
  return {
    cells: [
      listener.protocol,
      at(listener),
      names.join(", "),
      path,
      match,
      lead.text,
      [who(listener, openings), ...limits(config, way)].join("; "),
      writes,
    ],
    sorted: [listener.port, listener.address, names.at(-1) === OTHER_NAME ? 1 : 0, names.join(), path, match],
  };
}

/** Which of the clients that can connect come in, by the access policy of the route and the certificates of its site. */
function limits(config: ProxyConfig, way: WayIn): string[] {
  const { clientCertificate } = way.server;
  const policy = policyOf(config, way);
  return [
    ...(clientCertificate?.required === true ? [`only ${certificatesOf(clientCertificate)}`] : []),
    ...(policy?.allow === undefined ? [] : [`of them ${list(policy.allow)}`]),
    ...(policy === undefined ? [] : conditionsOf(policy)),
  ];
}

/** The address that a listener listens on, and the port that clients connect to if something maps it. */
function at(listener: ListenerConfig): string {
  const port = clientPort(listener);
  return port === listener.port ? endpoint(place(listener)) : `${endpoint(place(listener))}, as ${port}`;
}

const place = ({
  address,
  port,
}: Pick<ListenerConfig, "address" | "port">): { host: string; port: number } => ({
  host: address,
  port,
});

type ListenerAddress = Pick<ListenerConfig, "address" | "port"> &
  Partial<Pick<ListenerConfig, "proxyProtocol">>;

function who({ address, port, proxyProtocol }: ListenerAddress, openings: Openings | undefined): string {
  const first = isLoopback(address) ? "this host" : letIn(port, openings);
  return proxyProtocol === undefined ? first : `${first}; named by ${list(proxyProtocol.from)} (PROXY)`;
}

function letIn(port: number, openings: Openings | undefined): string {
  if (openings === undefined) return "everyone";
  const { ports, from: portsFrom } = openings;
  const all = [
    ...(ports.includes(port) ? [{ port, protocol: "tcp", from: portsFrom }] : []),
    ...openings.allowed,
  ];
  const rules = all.filter((rule) => rule.port === port && rule.protocol !== "udp");
  if (rules.some(({ from }) => from === undefined)) return "everyone";
  const from = rules.flatMap((rule) => rule.from ?? []);
  return from.length === 0 ? "this host (firewall)" : `${list([...new Set(from)])} (firewall)`;
}

/** The listener of probes, which no virtual server has. */
function healthRows({ healthListener }: ProxyConfig, openings: Openings | undefined): TableRow[] {
  if (healthListener === undefined) return [];
  const { address, port } = healthListener;
  return ["/healthz", "/readyz"].map((path) => ({
    cells: [
      ...["http", endpoint(place(healthListener)), ANY_NAME, path, "exact", "200 or 503, for probes"],
      ...[who(healthListener, openings), "-"],
    ],
    sorted: [port, address, 0, "", path, "exact"],
  }));
}

/** The listener of monitoring, unless it is a socket that only processes of this host reach. */
function metricsRows({ metricsListener }: ProxyConfig, openings: Openings | undefined): TableRow[] {
  if (metricsListener === undefined || !("port" in metricsListener)) return [];
  const { address, port, allow } = metricsListener;
  const reached = who(metricsListener, openings);
  return [
    {
      cells: [
        ...["http", endpoint(place(metricsListener)), ANY_NAME, "/metrics", "exact", "metrics"],
        ...[allow.length === 0 ? reached : `${reached}; of them ${list(allow)}`, "-"],
      ],
      sorted: [port, address, 0, "", "/metrics", "exact"],
    },
  ];
}

function compare(a: TableRow["sorted"], b: TableRow["sorted"]): number {
  const i = a.findIndex((value, at) => value !== b[at]);
  return i === -1 ? 0 : a[i]! < b[i]! ? -1 : 1;
}
