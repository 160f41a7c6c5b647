import { connect } from "node:net";
import { networkInterfaces } from "node:os";
import type { DeploymentServices } from "../../../model/index.js";
import { canonicalAddress, ipv4Scope } from "../../../model/net/address.js";
import { isLoopback } from "../../../model/net/authority.js";
import { sourceTo } from "../../../runtime/load/ownAddress.js";
import { showUnits, type ShownUnit, startsWithHost } from "./shownUnits.js";

/** Facts about the machine the diagnosis runs on. Nothing is changed. */

/** A systemd unit as it is. */
export interface UnitState {
  readonly name: string;
  /** `loaded`, `masked`, `not-found`, … */
  readonly load: string;
  /** The unit's main process; 0 if it has none. */
  readonly mainPid: number;
  /** `active`, `inactive`, `failed`, … */
  readonly state: string;
  readonly enabled: boolean;
  /** Program and arguments of ExecStart. */
  readonly command: string;
}

/** The units of the deployment by their program; units that it does not name are missing. */
export interface Units extends Partial<
  Readonly<Record<"proxy" | "proxySocket" | "firewall" | "keepalived", UnitState>>
> {
  readonly daemons?: readonly UnitState[];
}

/** Addresses of this machine, in canonical form. */
export function ownAddresses(): Set<string> {
  const all = Object.values(networkInterfaces()).flatMap((one) => one!);
  return new Set(all.map(({ address }) => canonicalAddress(address)));
}

/** Whether an address or name is not this machine's own: it is reached as clients reach it. */
export const isElsewhere = (host: string): boolean =>
  !isLoopback(host) && !ownAddresses().has(canonicalAddress(host));

/**
 * The address of this machine that a public address is translated to: the private one that packets would leave from.
 * Undefined if they leave from a public one, or cannot leave: then nothing translates it, and the host has lost the
 * address.
 */
export async function translatedTo(address: string): Promise<string | undefined> {
  if (ipv4Scope(address) !== "public") return undefined;
  const source = await sourceTo(address);
  return source !== undefined && ipv4Scope(source) === "private" ? source : undefined;
}

/** The units of a deployment; undefined if systemd does not respond. */
export async function unitsOf(services: DeploymentServices): Promise<Units | undefined> {
  const { proxy, daemons = [], ...others } = services;
  const named = Object.entries<string>({ proxy: proxy.service, proxySocket: proxy.socket, ...others });
  const shown = await showUnits(
    [...named.map(([, unit]) => unit), ...daemons.map(({ unit }) => unit)],
    SHOW_SECONDS,
  );
  if ("code" in shown) return undefined;
  const states = shown.map(unitState);
  return {
    ...Object.fromEntries(named.map(([role], i) => [role, states[i]!])),
    daemons: states.slice(named.length),
  };
}

const SHOW_SECONDS = 10;

function unitState({ unit, load, active, startLinks, command, mainPid }: ShownUnit): UnitState {
  return { name: unit, load, mainPid, state: active, enabled: startsWithHost(startLinks), command };
}

/** Whether something accepts connections there. */
export function isOpen(address: string, port: number, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port });
    const done = (open: boolean): void => {
      socket.destroy();
      resolve(open);
    };
    socket.setTimeout(timeoutMs, () => done(false));
    socket.once("connect", () => done(true));
    socket.once("error", () => done(false));
  });
}
