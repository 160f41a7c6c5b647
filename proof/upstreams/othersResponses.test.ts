import type { Agent } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { ask, asOneClient, Tally } from "./client.js";
import { NAMES, recipe, type ServerName } from "./servers.js";
import { stageOf } from "./stage.js";

/**
 * Nobody gets a response that is not their own, whatever servers send after the head of a response without content: to HEAD,
 * 204 and 304 (RFC 9112, 6.3). gunicorn before 27 sends there what the application gives, in a segment of its own, and
 * uvicorn does after 204 and 304 with a length; some clients choose what that is.
 */

const stage = stageOf(NAMES);

/** What goes after the head would be read as the response to the next request. */
const forged = (by: string): string => {
  const body = `forged by ${by}`;
  return `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
};

interface Attack {
  readonly name: string;
  readonly method: string;
  readonly code: number;
  readonly framing: "length" | "chunked";
}

const ATTACKS: readonly Attack[] = [
  { name: "HEAD with a length", method: "HEAD", code: 200, framing: "length" },
  { name: "HEAD in chunks", method: "HEAD", code: 200, framing: "chunked" },
  { name: "HEAD of a redirect", method: "HEAD", code: 302, framing: "length" },
  { name: "204 with a length", method: "GET", code: 204, framing: "length" },
  { name: "204 without one", method: "GET", code: 204, framing: "chunked" },
  { name: "304 with a length", method: "GET", code: 304, framing: "length" },
  { name: "304 without one", method: "GET", code: 304, framing: "chunked" },
];

/** How long servers wait between head and content: longer than a victim needs to take the connection. */
const GAP_MS = 5;
const CLIENTS = 4;

/** Clients that make every attack some times; they too get their own responses, by the status. */
async function attack(tally: Tally, server: ServerName, rounds: number): Promise<void> {
  const attackOnce = ({ name, method, code, framing }: Attack, agent: Agent): Promise<void> => {
    const text = encodeURIComponent(forged(name));
    const path = `/${server}/text?code=${code}&framing=${framing}&ms=${GAP_MS}&text=${text}`;
    const response = ask(stage().port, path, { method, agent });
    return tally.take(response, ({ status, body }) => status === code && body.length === 0);
  };
  const one = (): Promise<void> =>
    asOneClient(async (agent) => {
      for (let round = 0; round < rounds; round++) for (const each of ATTACKS) await attackOnce(each, agent);
    });
  await Promise.all(Array.from({ length: CLIENTS }, one));
}

/** Of the servers that send content after HEAD, none is one after which a connection goes on. */
test("connections go on after HEAD where the server has shown that it sends nothing, and nowhere else", async () => {
  const head = (name: ServerName): Promise<unknown> =>
    asOneClient((agent) => ask(stage().port, `/${name}/answer?id=head&ms=0`, { method: "HEAD", agent }));
  for (let round = 0; round < 2; round++) {
    await Promise.all(NAMES.flatMap((name) => Array.from({ length: 4 }, () => head(name))));
    await sleep(1_300);
  }
  const goesOn: string[] = [];
  for (const name of NAMES) {
    await head(name);
    if (stage().connectionsTo([name]).length > 0) goesOn.push(name);
  }
  expect(goesOn).toEqual(
    NAMES.filter((name) => {
      const { keepsConnections, overruns = false } = recipe(name);
      // After HEAD uvicorn sends nothing.
      return keepsConnections && (!overruns || name === "uvicorn");
    }),
  );
});

test.each(NAMES)("%s: each client gets its own responses", async (name) => {
  const { overruns = false, slow = false } = recipe(name);
  const victims = new Tally(stage().port, name);
  const attackers = new Tally(stage().port, name);
  let isOver = false;
  const asking = victims.hammer(CLIENTS, () => isOver);
  await attack(attackers, name, slow ? 1 : 5);
  isOver = true;
  await asking;
  expect([...victims.foreign, ...attackers.foreign]).toEqual([]);
  // A server that breaks its own responses may cost others theirs; it must not give them somebody else's.
  if (!overruns) expect([...victims.errors, ...attackers.errors]).toEqual([]);
  expect(victims.own).toBeGreaterThan(10);
});

test("nothing is left of it", () => stage().conserved());
