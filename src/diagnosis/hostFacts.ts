import { execFile } from "node:child_process";
import { createSocket } from "node:dgram";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { networkInterfaces } from "node:os";
import type { DeploymentServices } from "../model/index.js";
import { ipv4Scope } from "../model/address.js";
import { hasStartLinks, shownProperty } from "./shownUnit.js";

/** Facts about the machine the diagnosis runs on. Nothing is changed. */

/** A systemd unit as it is. */
export interface UnitState {
  readonly name: string;
  /** `loaded`, `masked`, `not-found`, … */
  readonly load: string;
  /** Its main process; 0 if it has none. */
  readonly mainPid: number;
  /** `active`, `inactive`, `failed`, … */
  readonly state: string;
  readonly enabled: boolean;
  /** Program and arguments of ExecStart. */
  readonly command: string;
}

/** The units of the deployment by what they run; those it does not name are missing. */
export type Units = Readonly<
  Partial<
    Record<"proxy" | "proxySocket" | "webApplication" | "fileServer" | "webdav" | "firewall", UnitState>
  >
>;

export interface ListeningSocket {
  readonly address: string;
  readonly port: number;
}

/** Every TCP socket that listens, as the kernel lists them (proc(5), /proc/net/tcp). */
export function listeningSockets(): ListeningSocket[] {
  return ["/proc/net/tcp", "/proc/net/tcp6"].flatMap((file) =>
    readLines(file)
      .slice(1)
      .flatMap((line) => {
        const [, local = "", , state] = line.trim().split(/\s+/);
        const [address = "", port = ""] = local.split(":");
        return state === LISTENING ? [{ address: plainAddress(address), port: parseInt(port, 16) }] : [];
      }),
  );
}

const LISTENING = "0A";

/** An address of the kernel's: 32-bit words in hex, each in the host's (little-endian) order. */
function plainAddress(hex: string): string {
  const bytes = Buffer.from(hex, "hex").swap32();
  if (bytes.length === 4) return bytes.join(".");
  const groups = Array.from({ length: 8 }, (_, i) => bytes.readUInt16BE(i * 2).toString(16));
  return groups.join(":") === "0:0:0:0:0:0:0:1" ? "::1" : groups.join(":");
}

function readLines(file: string): string[] {
  try {
    return readFileSync(file, "latin1").trimEnd().split("\n");
  } catch {
    // Without IPv6 there is no such file.
    return [];
  }
}

/** Addresses of this machine. */
export function ownAddresses(): Set<string> {
  return new Set(
    Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address)),
  );
}

/**
 * The address of this machine that a public address is translated to: the private one by which its packets would leave.
 * Undefined where they leave by a public one, or have no way out: then nobody translates, and the address is lost.
 */
export async function translatedTo(address: string): Promise<string | undefined> {
  if (ipv4Scope(address) !== "public") return undefined;
  const source = await sourceTo(address);
  return source !== undefined && ipv4Scope(source) === "private" ? source : undefined;
}

/** The source address that the kernel chooses on the way to an address; nothing is sent. */
function sourceTo(address: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = createSocket("udp4");
    const done = (source?: string): void => {
      socket.close();
      resolve(source);
    };
    socket.once("error", () => done());
    socket.connect(9, address, () => done(socket.address().address));
  });
}

/** The units of a deployment; undefined where no systemd answers. */
export async function unitsOf(services: DeploymentServices): Promise<Units | undefined> {
  const { proxy, ...others } = services;
  const names: Partial<Record<keyof Units, string>> = {
    proxy: proxy.service,
    proxySocket: proxy.socket,
    ...others,
  };
  const units: Partial<Record<keyof Units, UnitState>> = {};
  for (const [role, name] of Object.entries(names) as [keyof Units, string][]) {
    const state = await unitState(name);
    if (state === undefined) return undefined;
    units[role] = state;
  }
  return units;
}

async function unitState(name: string): Promise<UnitState | undefined> {
  const properties = "--property=LoadState,ActiveState,UnitFileState,ExecStart,MainPID";
  const text = await output("systemctl", ["show", properties, "--", name]);
  if (text === undefined) return undefined;
  const value = (property: string): string => shownProperty(text, property);
  const file = value("UnitFileState");
  return {
    name,
    load: value("LoadState"),
    mainPid: Number(value("MainPID")),
    state: value("ActiveState"),
    // What others start needs no links of its own.
    enabled: hasStartLinks(file) || file === "static" || file === "indirect",
    command: /argv\[\]=(.*?) ; ignore_errors=/.exec(value("ExecStart"))?.[1] ?? "",
  };
}

/** What a command prints; undefined if it is not there or fails. */
function output(program: string, args: readonly string[]): Promise<string | undefined> {
  return new Promise((resolve) => {
    const options = { timeout: COMMAND_MS, env: { ...process.env, LC_ALL: "C.UTF-8" } };
    execFile(program, args, options, (error, stdout) => resolve(error === null ? stdout : undefined));
  });
}

const COMMAND_MS = 10_000;

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
