import { randomInt } from "node:crypto";
import { createServer, type Server } from "node:net";

/**
 * Free loopback ports, all of five digits so that texts with a port in them have one length everywhere.
 *
 * They lie below the range the kernel takes ports of outgoing connections from (32768 and up on Linux): one of those
 * could be taken by any connection of another test between this look and the use.
 */
export async function freePorts(count: number): Promise<number[]> {
  const held: { port: number; server: Server }[] = [];
  try {
    for (let attempts = 0; held.length < count; attempts++) {
      if (attempts > 200) throw new Error("no free ports between 12000 and 32000");
      const port = randomInt(12_000, 32_000);
      const server = await hold(port);
      if (server !== undefined) held.push({ port, server });
    }
  } finally {
    await Promise.all(held.map(({ server }) => new Promise((done) => server.close(done))));
  }
  return held.map(({ port }) => port);
}

/** Listens on a port; undefined if it is taken. */
function hold(port: number): Promise<Server | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(undefined));
    server.listen(port, "127.0.0.1", () => resolve(server));
  });
}

/** One such port. */
export async function freePort(): Promise<number> {
  const [port] = await freePorts(1);
  return port!;
}
