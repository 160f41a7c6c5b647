import { randomInt } from "node:crypto";
import { once } from "node:events";
import { connect, createServer, type Server } from "node:net";

/**
 * Free loopback ports, all of five digits so that texts with a port in them have one length everywhere.
 *
 * A port that was only looked at can be taken by a test in another process before it is used, and a look at a port that
 * another test is about to use makes that one fail. So each process claims blocks of ports, and no other process looks at
 * them: it listens on the first port of a block, for as long as it lives.
 *
 * They are below the range that the kernel takes ports of outgoing connections from (32768 and up on Linux): one of
 * those could be taken by any connection of another test.
 */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    const port = claimed.shift();
    if (port === undefined) claimed.push(...(await claimBlock()));
    else if (await isFree(port)) ports.push(port);
  }
  return ports;
}

/** One such port. */
export async function freePort(): Promise<number> {
  const [port] = await freePorts(1);
  return port!;
}

/** An offset that leads the ports 80 and 443 to free ones, below all blocks. Processes begin to look at different places. */
export async function freePortOffset(): Promise<number> {
  for (let i = 0; i < OFFSETS; i++) {
    const offset = FIRST_OFFSET + ((process.pid + i) % OFFSETS) * OFFSETS_APART;
    if ((await isFree(80 + offset)) && (await isFree(443 + offset))) return offset;
  }
  throw new Error(`no free ports for 80 and 443 from ${FIRST_OFFSET} on`);
}

/** So that no two of them lead to one port, nor to one that `npm start` takes. */
const OFFSETS_APART = 100;
const FIRST_OFFSET = 9_950;
const OFFSETS = 15;

const FIRST_PORT = 12_000;
const BLOCK_SIZE = 25;
const BLOCKS = 800;

/** Ports of this process that were not given out yet. Each is given once. */
const claimed: number[] = [];

async function claimBlock(): Promise<number[]> {
  const from = randomInt(BLOCKS);
  for (let i = 0; i < BLOCKS; i++) {
    const first = FIRST_PORT + ((from + i) % BLOCKS) * BLOCK_SIZE;
    const claim = await listening(first);
    if (claim === undefined) continue;
    claim.unref();
    return Array.from({ length: BLOCK_SIZE - 1 }, (_, at) => first + 1 + at);
  }
  throw new Error(`no free ports from ${FIRST_PORT} on: other processes have claimed every block`);
}

async function isFree(port: number): Promise<boolean> {
  const server = await listening(port);
  if (server !== undefined) await new Promise((done) => server.close(done));
  return server !== undefined;
}

/** Listens on a port; undefined if it is taken. */
function listening(port: number): Promise<Server | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(undefined));
    server.listen(port, "127.0.0.1", () => resolve(server));
  });
}

/** Listens on a port of this machine, so that nothing else can: when this returns, not some time after. */
export async function occupied(port: number): Promise<Server> {
  const server = createServer().listen(port, "127.0.0.1");
  await once(server, "listening");
  return server;
}

/** Whether nobody listens on a port of this machine. */
export async function isRefused(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  const refused = await Promise.race([
    once(socket, "connect").then(() => false),
    once(socket, "error").then(() => true),
  ]).catch(() => true);
  socket.destroy();
  return refused;
}
