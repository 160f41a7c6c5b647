import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ListenerConfig } from "../../src/model/serving.js";
import { listenProblem, ListenSockets, type PassedSocket } from "../../src/runtime/listen/sockets.js";
import { bind } from "../../src/runtime/sockets/node/boundSockets.js";
import type { BoundSocket } from "../../src/runtime/sockets/node/socketHolder.js";
import { freePort, freePorts } from "../../testkit/ports.js";

/** Which listening sockets a master opens, keeps, passes on and closes. */

const servers: Server[] = [];
afterEach(() => servers.splice(0).forEach((server) => server.close()));

const listener = (port: number, address = "127.0.0.1"): ListenerConfig =>
  ({ name: `${address}:${port}`, address, port, protocol: "http" }) as ListenerConfig;

async function listen(where: object): Promise<Server> {
  const server = createServer().listen(where);
  servers.push(server);
  await once(server, "listening");
  return server;
}

/** A descriptor that came with this process. */
async function passed(own = false): Promise<PassedSocket & { readonly port: number }> {
  const port = await freePort();
  return { fd: (bind("127.0.0.1", port) as BoundSocket).fd, name: "web.socket", own, port };
}

const socketAt = (fd: number): string => readlinkSync(`/proc/self/fd/${fd}`);
const isOpen = (socket: string): boolean =>
  readdirSync("/proc/self/fd").some((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === socket;
    } catch {
      return false;
    }
  });

/** The descriptor of each listener. */
function acquired(sockets: ListenSockets, ...listeners: ListenerConfig[]): number[] {
  const outcome = sockets.acquire(listeners);
  if (!outcome.ok) throw new Error(outcome.problems.map(({ message }) => message).join());
  expect([...outcome.value.keys()]).toEqual(listeners.map(({ name }) => name));
  return [...outcome.value.values()].map(({ fd }) => fd);
}

describe("sockets of its own", () => {
  test("are opened once, passed on, and closed when no listener has them", async () => {
    const [one, two] = (await freePorts(2)).map((port) => listener(port)) as [ListenerConfig, ListenerConfig];
    const sockets = new ListenSockets({});
    const fds = acquired(sockets, one, two);
    expect(acquired(sockets, two, one)).toEqual(fds.toReversed());
    expect(sockets.passable()).toEqual(fds.map((fd) => ({ fd, name: "portico", own: true })));
    const [first, second] = fds.map(socketAt) as [string, string];
    sockets.keepOnly([one, two]);
    expect([isOpen(first), isOpen(second)]).toEqual([true, true]);
    sockets.keepOnly([two]);
    expect([isOpen(first), isOpen(second)]).toEqual([false, true]);
    expect(sockets.passable()).toEqual([{ fd: fds[1], name: "portico", own: true }]);
    expect(sockets.unused([])).toEqual([]);
    sockets.closeAll();
    expect([isOpen(second), sockets.passable()]).toEqual([false, []]);
    sockets.closeAll();
  });

  test("are all opened, or none of the new ones", async () => {
    const [kept, added] = (await freePorts(2)).map((port) => listener(port)) as [
      ListenerConfig,
      ListenerConfig,
    ];
    const taken = (await listen({ port: 0, host: "127.0.0.1" })).address() as { port: number };
    const sockets = new ListenSockets({});
    const [fd] = acquired(sockets, kept);
    const before = readdirSync("/proc/self/fd").length;
    const outcome = sockets.acquire([kept, added, listener(taken.port), listener(taken.port, "192.0.2.77")]);
    expect(outcome).toMatchObject({
      ok: false,
      problems: [
        { code: "listen.address-in-use", path: "listeners[2]" },
        { code: "listen.address-not-available", path: "listeners[3]" },
      ],
    });
    expect(sockets.passable()).toEqual([{ fd, name: "portico", own: true }]);
    expect(readdirSync("/proc/self/fd")).toHaveLength(before);
    sockets.closeAll();
  });

  test("are told from those of others on the same port", async () => {
    const port = await freePort();
    const sockets = new ListenSockets({});
    const refusal = (address: string) => {
      const outcome = sockets.acquire([listener(port, address)]);
      return outcome.ok ? undefined : outcome.problems[0];
    };
    const [fd] = acquired(sockets, listener(port, "::1"));
    await listen({ fd });
    await listen({ port, host: "127.0.0.1" });
    const by = (address: string): object => ({
      message: expect.stringMatching(
        new RegExp(
          `^cannot listen on ${address}:${port}: .+ \\(pid ${process.pid}\\) already listens there$`,
        ),
      ),
      fix: expect.stringMatching(/^Stop .+ \(pid \d+\), or choose another port\.$/),
    });
    expect([refusal("127.0.0.1"), refusal("0.0.0.0")]).toMatchObject([by("127.0.0.1"), by("0.0.0.0")]);
    expect(refusal("::")).toMatchObject({
      ...{ code: "listen.address-in-use", path: "listeners[0]" },
      message: `cannot listen on [::]:${port} while portico itself listens on [::1]:${port}`,
    });
    const otherPort = await freePort();
    acquired(sockets, listener(otherPort));
    await listen({ port: otherPort, host: "::1" });
    const taken = sockets.acquire([listener(otherPort, "::1")]);
    expect(taken).toMatchObject({
      problems: [{ message: expect.stringContaining(`(pid ${process.pid}) already listens there`) }],
    });
    expect(sockets.acquire([listener(otherPort, "::")])).toMatchObject({
      problems: [{ message: expect.not.stringContaining("portico itself") }],
    });
  });
});

describe("sockets that this process was started with", () => {
  test("are used before others, told of without a listener, and closed only at the end", async () => {
    const { port, ...socket } = await passed();
    const sockets = new ListenSockets({});
    sockets.adopt([socket]);
    const own = listener(await freePort());
    const [fd, more] = acquired(sockets, listener(port), own);
    expect(fd).toBe(socket.fd);
    expect(sockets.unused([listener(port)])).toEqual([]);
    expect(sockets.unused([own])).toMatchObject([
      {
        code: "listen.unused-socket",
        path: "web.socket",
        message: `was passed by systemd, but no listener listens on 127.0.0.1:${port}`,
      },
    ]);
    const [name, ownName] = [socketAt(socket.fd), socketAt(more!)];
    sockets.keepOnly([]);
    expect(sockets.passable()).toEqual([socket]);
    expect([isOpen(name), isOpen(ownName)]).toEqual([true, false]);
    sockets.closeAll();
    expect([isOpen(name), sockets.passable(), sockets.unused([])]).toEqual([false, [], []]);
  });

  test("are this master's if they were those of the one before", async () => {
    const { port, ...socket } = await passed(true);
    const sockets = new ListenSockets({});
    sockets.adopt([socket]);
    expect(acquired(sockets, listener(port))).toEqual([socket.fd]);
    expect(sockets.passable()).toEqual([{ ...socket, name: "portico" }]);
    expect(sockets.unused([])).toEqual([]);
    const name = socketAt(socket.fd);
    sockets.keepOnly([]);
    expect(isOpen(name)).toBe(false);
  });

  test("are left alone if they are not for TCP", async () => {
    const folder = mkdtempSync(join(tmpdir(), "portico-sockets-"));
    const server = await listen({ path: join(folder, "socket") });
    const { fd } = (server as unknown as { _handle: { fd: number } })._handle;
    const sockets = new ListenSockets({});
    sockets.adopt([
      { fd, name: "unix.socket", own: false },
      { fd, name: "own", own: true },
    ]);
    const message = `was passed by systemd, but no listener listens on a socket of this kind (descriptor ${fd})`;
    expect(sockets.unused([])).toMatchObject([
      { path: "unix.socket", message },
      { path: "own", message },
    ]);
    expect(sockets.passable()).toEqual([]);
    const name = socketAt(fd);
    sockets.closeAll();
    expect(isOpen(name)).toBe(true);
    rmSync(folder, { recursive: true });
  });

  test.each<[string, NodeJS.ProcessEnv, string[]]>([
    ["for another process", { LISTEN_PID: "1", LISTEN_FDS: "1" }, []],
    ["without a number", { LISTEN_PID: `${process.pid}`, LISTEN_FDS: "x" }, []],
    ["without names", { LISTEN_PID: `${process.pid}`, LISTEN_FDS: "1" }, ["descriptor 3"]],
    [
      "with fewer names",
      { LISTEN_PID: `${process.pid}`, LISTEN_FDS: "2", LISTEN_FDNAMES: "a", LISTEN_PIDFDID: "1" },
      ["a", "descriptor 4"],
    ],
    ["with all names", { LISTEN_PID: `${process.pid}`, LISTEN_FDS: "2", LISTEN_FDNAMES: "a:b" }, ["a", "b"]],
  ])("are named by systemd, %s", (_, said, names) => {
    const env = { ...said, OTHER: "1" };
    const unused = new ListenSockets(env).unused([]);
    expect(unused.map(({ path }) => path)).toEqual(names);
    names.forEach((_, i) => expect(unused[i]!.message).toContain(`(descriptor ${3 + i})`));
    expect(env).toEqual({ OTHER: "1" });
  });
});

const firstFreePort = Number(readFileSync("/proc/sys/net/ipv4/ip_unprivileged_port_start", "utf8"));
(firstFreePort > 81 ? test : test.skip)(
  "a port that is root's is a matter for the socket unit, if there is one",
  async () => {
    const sockets = new ListenSockets({});
    const refusal = () => {
      if (process.getuid!() === 0) process.seteuid!(65_534);
      try {
        return sockets.acquire([listener(81)]);
      } finally {
        process.seteuid!(process.getuid!());
      }
    };
    const denied = { code: "listen.permission-denied", path: "listeners[0]" };
    expect(refusal()).toMatchObject({
      problems: [{ ...denied, fix: expect.not.stringContaining("ListenStream") }],
    });
    const { port: _, ...socket } = await passed();
    sockets.adopt([socket]);
    const fix = "Add ListenStream=127.0.0.1:81 to the socket unit, and restart the socket unit.";
    expect(refusal()).toMatchObject({ problems: [{ ...denied, fix }] });
    sockets.closeAll();
  },
);

test.each<[string, object]>([
  ["EACCES", { code: "listen.permission-denied", message: "may not listen on 127.0.0.1:1", fix: "f" }],
  [
    "EADDRNOTAVAIL",
    {
      code: "listen.address-not-available",
      message: "cannot listen on 127.0.0.1:1: this host does not have the address",
    },
  ],
  [
    "EADDRINUSE",
    {
      ...{
        code: "listen.address-in-use",
        message: "cannot listen on 127.0.0.1:1: another process already listens there",
      },
      fix: expect.not.stringContaining("undefined"),
    },
  ],
  ["EINVAL", { code: "listen.failed", message: "cannot listen on 127.0.0.1:1: EINVAL" }],
])("why nothing can listen there: %s", (error, expected) => {
  expect(listenProblem(error, "p", { address: "127.0.0.1", port: 1 }, { fix: "f" })).toMatchObject({
    path: "p",
    ...expected,
  });
});
