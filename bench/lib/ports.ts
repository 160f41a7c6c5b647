import { randomInt } from "node:crypto";
import { connect, createServer, type Server } from "node:net";

/** Free loopback ports, below the range the kernel takes ports of outgoing connections from. */
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

/** Waits until a port accepts connections. */
export async function accepting(port: number, alive: () => boolean, limitMs = 15_000): Promise<boolean> {
  const deadline = performance.now() + limitMs;
  while (!(await accepts(port))) {
    if (!alive() || performance.now() > deadline) return false;
    await new Promise((done) => setTimeout(done, 10));
  }
  return true;
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port });
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}

function hold(port: number): Promise<Server | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(undefined));
    server.listen(port, "127.0.0.1", () => resolve(server));
  });
}
