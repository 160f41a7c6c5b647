import {
  canonicalAddress,
  clientPort,
  isLoopback,
  isWildcard,
  type ListenerConfig,
  serversOf,
} from "../../../model/index.js";
import { loopbackPorts } from "../../../model/host/host.js";
import type { ListeningSocket } from "../../../runtime/sockets/node/listeningSockets.js";
import type { Evidence } from "../evidence.js";
import { explained, failure, notAsked, ok, type Verdict } from "../verdict.js";

/** Whether the ports of the listeners are open, and those of the daemons are not. */
export function askPorts(evidence: Evidence, failed: ReadonlySet<string>): Verdict {
  const { config, deployment, sockets, openPorts } = evidence;
  const portOf = openPorts === undefined ? ({ port }: ListenerConfig): number => port : clientPort;
  const wanted = [...new Set(config.listeners.map(portOf))];
  const upstreams = config.upstreams.flatMap(serversOf).map(({ url }) => url);
  const hidden = (deployment?.network?.loopbackPorts ?? loopbackPorts(upstreams)).filter(
    (port) => !wanted.includes(port),
  );
  if (evidence.unresolved !== undefined) {
    const fix = "Create the DNS record, or set the host's address with --connect.";
    return failure(`${evidence.unresolved} has no address: the name does not resolve here`, [], fix);
  }
  if (openPorts !== undefined) {
    // Another machine does not reach a listener on loopback.
    const reachable = config.listeners.filter(({ address }) => !isLoopback(address));
    const closed = wanted.filter(
      (port) => openPorts.get(port) === false && reachable.some((listener) => portOf(listener) === port),
    );
    const open = hidden.filter((port) => openPorts.get(port) === true);
    const seen = [...openPorts].flatMap(([port, isOpen]) => (isOpen ? [port] : []));
    return judgePorts(closed, open, `open from here: ${seen.join(", ") || "none"}`, failed);
  }
  if (sockets === undefined) return notAsked("The host's ports were not checked.");
  const everywhere = sockets.filter(({ address }) => !isLoopback(address));
  const missing = config.listeners.filter((listener) => !sockets.some((one) => serves(one, listener)));
  const closed = [...new Set(missing.map(({ port }) => port))];
  const open = everywhere.filter(({ port }) => hidden.includes(port)).map(({ port }) => port);
  // Our firewall drops connections from outside, whatever listens.
  const guarded = evidence.units?.firewall?.state === "active";
  const ports = [...new Set(everywhere.map(({ port }) => port))].sort((a, b) => a - b);
  return judgePorts(
    closed,
    guarded ? [] : [...new Set(open)],
    `listening for everyone: ${ports.join(", ")}`,
    failed,
  );
}

/** Whether a socket may belong to a listener: same port, and same address or all addresses. */
function serves(socket: Pick<ListeningSocket, "address" | "port">, listener: ListenerConfig): boolean {
  if (socket.port !== listener.port) return false;
  const [wanted, there] = [listener, socket].map(({ address }) => canonicalAddress(address)) as [
    string,
    string,
  ];
  return wanted === there || [wanted, there].some(isWildcard);
}

function judgePorts(
  closed: readonly number[],
  open: readonly number[],
  seen: string,
  failed: ReadonlySet<string>,
): Verdict {
  const cause = ["config", "proxy"].find((id) => failed.has(id));
  if (closed.length > 0 && cause !== undefined) return explained(cause, seen);
  if (closed.length > 0) {
    const fix =
      "Start the proxy; from outside, check that the firewall and the router let the ports through.";
    return failure(`port ${closed.join(" and ")} cannot be reached`, [seen], fix);
  }
  if (open.length > 0) {
    const fix = "Make the daemon listen on 127.0.0.1 only, or deploy the firewall.";
    return failure(`port ${open.join(" and ")} must be reachable on localhost only`, [seen], fix);
  }
  return ok(seen);
}
