import { type ChildProcess, spawn } from "node:child_process";
import { isIPv6 } from "node:net";
import { type Deployment, ipv4Scope, ipv6Scope, isLoopback } from "../../model/index.js";
import { run } from "./system/command.js";
import type { AskedAddress, SeenOutside } from "./evidence.js";
import type { DiagnosisRow } from "./verdict.js";

/**
 * Asks the host as a machine beside it does: from a network namespace that reaches the host by a cable of its own. What
 * the host sends to itself passes neither the rules for other interfaces nor a translation of ports.
 */

export interface OutsideOptions {
  /** Node and the runtime: this program. */
  readonly programs: readonly string[];
  /** Undefined where there is none. */
  readonly deploymentFile?: string;
  readonly configFile: string;
  readonly host?: string;
  readonly timeoutMs: number;
}

/** The addresses that clients use: those of the deployment, or one of each family. */
export function clientAddresses(own: ReadonlySet<string>, deployment: Deployment | undefined): string[] {
  const isLocal = (address: string): boolean => (ipv4Scope(address) ?? ipv6Scope(address)) === "linkLocal";
  const usable = [...own].filter((address) => !isLoopback(address) && !isLocal(address));
  const named = usable.filter((address) => deployment?.network?.addresses.includes(address) === true);
  if (named.length > 0) return named;
  return [false, true].flatMap((six) => usable.find((address) => isIPv6(address) === six) ?? []);
}

export async function askFromOutside(
  addresses: readonly string[],
  options: OutsideOptions,
): Promise<SeenOutside> {
  if (addresses.length === 0) return { why: "the host has no address" };
  const namespace = await openNamespace();
  if (typeof namespace === "string") return { why: namespace };
  try {
    const why = await connect(namespace);
    if (why !== undefined) return { why };
    const told = await Promise.all(addresses.map((address) => ask(namespace, address, options)));
    const refusal = told.find((one) => typeof one === "string");
    if (refusal !== undefined) return { why: refusal };
    return { asked: addresses.map((address, i) => ({ address, failed: told[i] as AskedAddress["failed"] })) };
  } finally {
    // The cable goes with the namespace.
    namespace.kill("SIGKILL");
  }
}

/** A process with a network of its own, which ends with this one; or why there is none. */
function openNamespace(): Promise<ChildProcess | string> {
  return new Promise((resolve) => {
    const child = spawn("unshare", ["--net", "sh", "-c", "ip link set lo up && echo && read _"], {
      stdio: ["pipe", "pipe", "ignore"],
    });
    child.once("error", (error) => resolve(`a network namespace cannot be made: ${error.message}`));
    child.once("exit", (code) => resolve(`a network namespace cannot be made (status ${code})`));
    child.stdout!.once("data", () => resolve(child));
  });
}

/** Two ends of a cable: addresses that no other network has (RFC 3927, RFC 4193), different ones in each process. */
function ends(): { name: string; ipv4: [string, string]; ipv6: [string, string] } {
  const { pid } = process;
  const third = (pid % 254) + 1;
  const first = (Math.floor(pid / 254) % 63) * 4;
  const prefix = `fd70:6f72:7469:${(pid % 65_536).toString(16)}`;
  return {
    name: `portico${pid}`.slice(0, 15),
    ipv4: [`169.254.${third}.${first + 1}`, `169.254.${third}.${first + 2}`],
    ipv6: [`${prefix}::1`, `${prefix}::2`],
  };
}

async function connect({ pid }: ChildProcess): Promise<string | undefined> {
  const { name, ipv4, ipv6 } = ends();
  const script = [
    `ip link add ${name} type veth peer name eth0 netns ${pid}`,
    `ip address add ${ipv4[0]}/30 dev ${name}`,
    // If the host has no IPv6, there is nothing to ask over IPv6.
    `{ ip address add ${ipv6[0]}/64 dev ${name} nodad 2> /dev/null || true; }`,
    `ip link set ${name} up`,
    `nsenter --net=/proc/${pid}/ns/net sh -c '${[
      `ip address add ${ipv4[1]}/30 dev eth0`,
      `{ ip address add ${ipv6[1]}/64 dev eth0 nodad 2> /dev/null || true; }`,
      "ip link set eth0 up",
      `ip route add default via ${ipv4[0]}`,
      `{ ip route add default via ${ipv6[0]} 2> /dev/null || true; }`,
    ].join(" && ")}'`,
  ].join(" && ");
  const made = await run(["sh", "-c", script], CONNECT_SECONDS);
  return made.code === 0 ? undefined : `no cable to a network namespace can be made: ${made.stderr.trim()}`;
}

async function ask(
  { pid }: ChildProcess,
  address: string,
  { programs, deploymentFile, configFile, host, timeoutMs }: OutsideOptions,
): Promise<AskedAddress["failed"] | string> {
  const seconds = Math.max(1, Math.ceil(timeoutMs / 1000));
  const doctor = ["doctor", "--elsewhere", "--json", "--connect", address, "--timeout", String(seconds)];
  const document = deploymentFile === undefined ? [] : ["--deployment", deploymentFile];
  const files = ["--config", configFile, ...document];
  const named = host === undefined ? [] : ["--host", host];
  const enter = `--net=/proc/${pid}/ns/net`;
  const said = await run(["nsenter", enter, "--", ...programs, ...doctor, ...files, ...named], ASK_SECONDS);
  try {
    const { rows } = JSON.parse(said.stdout) as { rows: readonly DiagnosisRow[] };
    return rows
      .filter(({ status }) => status === "failed")
      .map(({ id, cause, evidence }) => ({ id, evidence, cause }));
  } catch {
    return `there is no answer from a network namespace: ${said.stderr.trim() || `status ${said.code}`}`;
  }
}

const CONNECT_SECONDS = 20;
/** All requests of an address, each with its deadline. */
const ASK_SECONDS = 120;
