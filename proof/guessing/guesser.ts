import { Agent, get } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

/** Guesses passwords at a log-in, each another one, and prints how many got which status. */

export interface Guessing {
  readonly port: number;
  /** Where the guesses come from: one address or many by the word of a trusted proxy, or many addresses of 127.0.0.0/8. */
  readonly from: "one" | "many" | "loopback";
  readonly addresses: number;
  readonly guesses: number;
  /** Whether each client always sends the same password, which is no guess. */
  readonly constant?: boolean;
  /** Guesses a second; 0 for as fast as they get responses. */
  readonly rate: number;
}

const { port, from, addresses, guesses, rate, constant = false } = JSON.parse(process.argv[2]!) as Guessing;
const statuses: Record<string, number> = {};
const agents = new Map<string, Agent>();

/** A proxy in front keeps few connections; a client of its own has one. */
function agentOf(localAddress: string): Agent {
  const most = from === "loopback" ? 1 : CONNECTIONS;
  const agent = agents.get(localAddress) ?? new Agent({ keepAlive: true, maxSockets: most, localAddress });
  agents.set(localAddress, agent);
  return agent;
}

function guess(n: number): Promise<void> {
  const at = n % addresses;
  const low = `${(at >> 8) & 255}.${at & 255}`;
  const localAddress = from === "loopback" ? `127.1.${low}` : "127.0.0.1";
  const forwarded = from === "loopback" ? {} : { "X-Forwarded-For": `198.${(at >> 16) & 255}.${low}` };
  const authorization = `Basic ${Buffer.from(`ada:guess ${constant ? at : n}`).toString("base64")}`;
  const headers = { ...forwarded, authorization };
  return new Promise((resolve) => {
    const over = (status: string): void => {
      statuses[status] = (statuses[status] ?? 0) + 1;
      resolve();
    };
    get({ port, host: "127.0.0.1", path: "/syncdav/", headers, agent: agentOf(localAddress) }, (response) => {
      response.resume().on("end", () => over(String(response.statusCode)));
    }).on("error", () => over("none"));
  });
}

async function main(): Promise<void> {
  const begun = performance.now();
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < guesses) {
      const n = next++;
      if (rate > 0) await sleep(Math.max(0, begun + (n * 1_000) / rate - performance.now()));
      await guess(n);
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, work));
  for (const agent of agents.values()) agent.destroy();
  console.log(JSON.stringify({ statuses, seconds: (performance.now() - begun) / 1_000 }));
}

const CONNECTIONS = 16;
const WORKERS = 64;

void main();
