import { once } from "node:events";
import { closeSync, fstatSync, openSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { constants } from "node:os";
import {
  listeningDescriptor,
  listeningSockets,
  ownSockets,
} from "../../src/runtime/sockets/node/listeningSockets.js";
import { bind, socketOf } from "../../src/runtime/sockets/node/boundSockets.js";
import { doWithout, uses } from "../../src/runtime/sockets/node/pieces.js";
import type { BoundSocket } from "../../src/runtime/sockets/node/socketHolder.js";
import { freePort } from "../../proof/kit/ports.js";

/** Sockets that are bound and from which this process does not accept: by Node's own call, and without it by a thread. */

afterEach(() => void ((uses as Record<string, boolean>)["boundSockets"] = true));

describe.each([true, false])("with the call of Node: %s", (isThere) => {
  beforeEach(() => {
    if (!isThere) doWithout(["boundSockets"]);
  });
  const bound = (address: string, port: number): BoundSocket => {
    const found = bind(address, port);
    if (typeof found === "number") throw new Error(`errno ${found}`);
    return found;
  };

  test.each(["127.0.0.1", "::1"])(
    "%s is open until it is closed, and not a moment longer",
    async (address) => {
      const port = await freePort();
      for (let round = 0; round < 3; round++) {
        const socket = bound(address, port);
        expect([socket.address, socket.port, ownSockets().has(socket.fd)]).toEqual([address, port, true]);
        expect(socketOf(socket.fd)).toMatchObject({ fd: socket.fd, address, port });
        socket.close();
        if (isThere) continue;
        expect(() => fstatSync(socket.fd)).toThrow("EBADF");
        expect(listeningDescriptor(address, port)).toBeUndefined();
      }
    },
  );

  test("IPv6 leaves IPv4 to others", async () => {
    const port = await freePort();
    const [v6, v4] = [bound("::", port), bound("0.0.0.0", port)];
    expect([v6.address, v4.address]).toEqual(["::", "0.0.0.0"]);
    v6.close();
    v4.close();
  });

  test("an address that is taken, or not of this machine, is its errno", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const inode = expect.any(String) as string;
    expect(listeningSockets()).toContainEqual({ address: "127.0.0.1", port, inode });
    const mapped = createServer().listen(0, "::ffff:127.0.0.1");
    await once(mapped, "listening");
    const at = { address: "::ffff:7f00:1", port: (mapped.address() as AddressInfo).port };
    expect(listeningSockets()).toContainEqual({ ...at, inode });
    mapped.close();
    expect(ownSockets().get(listeningDescriptor("127.0.0.1", port)!)).toMatch(/^\d+$/);
    expect(listeningDescriptor("127.0.0.2", port)).toBeUndefined();
    expect(listeningDescriptor("127.0.0.1", port === 1 ? 2 : port - 1)).toBeUndefined();
    // By Node's call the socket is bound here, and refused when a worker listens.
    if (!isThere) expect(bind("127.0.0.1", port)).toBe(-constants.errno.EADDRINUSE);
    expect(bind("192.0.2.1", port)).toBe(-constants.errno.EADDRNOTAVAIL);
    server.close();
  });

  test("what is not a TCP socket is none", async () => {
    const file = openSync("/dev/null", "r");
    expect(socketOf(file)).toBeUndefined();
    closeSync(file);
    const server = createServer().listen("\0portico-test-unix");
    await once(server, "listening");
    const { fd } = (server as unknown as { _handle: { fd: number } })._handle;
    expect(socketOf(fd)).toBeUndefined();
    server.close();
  });
});

test("a held socket lets connections wait for who accepts", async () => {
  doWithout(["boundSockets"]);
  const socket = bind("127.0.0.1", await freePort()) as BoundSocket;
  const client = connect(socket.port, socket.address);
  await once(client, "connect");
  client.on("error", () => undefined).destroy();
  socket.close();
});
