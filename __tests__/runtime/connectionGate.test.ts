import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { ConnectionGate } from "../../src/runtime/listen/gate.js";

/** How many connections there may be, of all clients and of each, and who is told of those that may not. */

class Client extends EventEmitter {
  destroyed = false;
  constructor(readonly remoteAddress: string | undefined) {
    super();
  }
  destroy(): void {
    this.destroyed = true;
  }
  close(): void {
    this.emit("close");
  }
}

let warnings: string[];
/** Those that have no request; and how many the gate asked for, and got. */
let waiting: Client[];
let asked: [most: number, ended: number][];
let gate: ConnectionGate;
const PROXY = "192.0.2.9";
beforeEach(() => {
  warnings = [];
  gate = new ConnectionGate(
    { connectionsMax: 5, connectionsPerClientMax: 2 },
    (address) => address === PROXY,
    (message) => warnings.push(message),
    (most, counts) => {
      const ends = (waiting as unknown as Socket[]).filter(counts).slice(0, most);
      asked.push([most, ends.length]);
      return ends;
    },
  );
  [waiting, asked] = [[], []];
});
afterEach(() => jest.restoreAllMocks());

/** Whether each of these may connect, one after the other. */
function admitted(...addresses: (string | undefined)[]): boolean[] {
  return addresses.map((address) => {
    const client = new Client(address);
    const may = gate.admit(client as unknown as Socket);
    expect(client.destroyed).toBe(!may);
    return may;
  });
}
function open(address: string): Client {
  const client = new Client(address);
  expect(gate.admit(client as unknown as Socket)).toBe(true);
  return client;
}

test("all clients together have a limit, and one that goes makes room", () => {
  const first = open("192.0.2.1");
  expect(admitted("192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5", "192.0.2.6")).toEqual([
    ...[true, true, true, true],
    false,
  ]);
  first.close();
  expect(admitted("192.0.2.6", "192.0.2.7")).toEqual([true, false]);
  expect(warnings).toEqual(["limits.connectionsMax (5) is reached: new connections are closed"]);
});

test("each client has a limit of its own", () => {
  const [first, second] = [open("192.0.2.1"), open("192.0.2.1")];
  expect(admitted("192.0.2.1", "192.0.2.2")).toEqual([false, true]);
  expect(warnings).toEqual([
    "limits.connectionsPerClientMax (2) is reached by 192.0.2.1: new connections are closed",
  ]);
  first.close();
  expect(admitted("192.0.2.1", "192.0.2.1")).toEqual([true, false]);
  second.close();
  expect(admitted("192.0.2.1", "192.0.2.1")).toEqual([true, false]);
});

test("a client that has gone altogether is as new", () => {
  open("192.0.2.1").close();
  expect(admitted("192.0.2.1", "192.0.2.1", "192.0.2.1")).toEqual([true, true, false]);
});

test("a client is a /48 network over IPv6, and an address over IPv4, however it is written", () => {
  expect(admitted("2001:db8:1:1::1", "2001:db8:1:2:ffff::2", "2001:db8:1:ffff::3")).toEqual([
    true,
    true,
    false,
  ]);
  expect(warnings).toEqual([
    "limits.connectionsPerClientMax (2) is reached by 2001:db8:1::/48: new connections are closed",
  ]);
  expect(admitted("2001:db8:2:1::1", "::ffff:192.0.2.1")).toEqual([true, true]);
  const other = new ConnectionGate(
    { connectionsMax: 9, connectionsPerClientMax: 1 },
    () => false,
    () => {},
    () => [],
  );
  const may = ["::ffff:192.0.2.1", "192.0.2.1", "::ffff:192.0.2.2"].map((address) =>
    other.admit(new Client(address) as unknown as Socket),
  );
  expect(may).toEqual([true, false, true]);
});

test("a trusted proxy has no limit of its own, and counts among all", () => {
  expect(admitted(PROXY, PROXY, PROXY, PROXY, PROXY, PROXY)).toEqual([true, true, true, true, true, false]);
});

test("one whose client is named later counts among all at once, and for its client from then on", () => {
  const accept = (): Client & Socket => {
    const client = new Client(PROXY) as Client & Socket;
    expect(gate.admitUnidentified(client)).toBe(true);
    return client;
  };
  const all = Array.from({ length: 5 }, accept);
  const sixth = new Client(PROXY);
  expect([gate.admitUnidentified(sixth as unknown as Socket), sixth.destroyed]).toEqual([false, true]);
  const [first, second, third, other] = all as [
    Client & Socket,
    Client & Socket,
    Client & Socket,
    Client & Socket,
  ];
  const identify = (client: Client & Socket, address: string): unknown => [
    gate.identify(client, address),
    client.destroyed,
  ];
  const may = [true, false];
  expect([identify(first, "192.0.2.1"), identify(second, "192.0.2.1")]).toEqual([may, may]);
  expect(identify(third, "192.0.2.1")).toEqual([false, true]);
  expect(identify(other, PROXY)).toEqual(may);
  expect(warnings).toEqual([
    "limits.connectionsMax (5) is reached: new connections are closed",
    "limits.connectionsPerClientMax (2) is reached by 192.0.2.1: new connections are closed",
  ]);
  // One that is refused has counted for nobody.
  third.close();
  expect(identify(accept(), "192.0.2.1")).toEqual([false, true]);
  first.close();
  expect(identify(accept(), "192.0.2.1")).toEqual(may);
});

test("one that is gone already is counted until it is closed", () => {
  expect(admitted(undefined, undefined, undefined)).toEqual([true, true, false]);
});

test("nobody is warned twice in a minute, and of each limit by itself", () => {
  const now = jest.spyOn(performance, "now").mockReturnValue(1_000);
  for (let i = 0; i < 6; i++) admitted("192.0.2.1");
  now.mockReturnValue(60_999);
  for (let i = 0; i < 6; i++) admitted("192.0.2.1");
  expect(warnings).toHaveLength(1);
  for (let i = 2; i < 9; i++) admitted(`192.0.2.${i}`);
  expect(warnings).toHaveLength(2);
  now.mockReturnValue(61_000);
  admitted("192.0.2.9");
  expect(warnings).toHaveLength(2);
  now.mockReturnValue(121_000);
  admitted("192.0.2.9");
  expect(warnings.map((text) => text.split(" ")[0])).toEqual([
    ...["limits.connectionsPerClientMax", "limits.connectionsMax"],
    "limits.connectionsMax",
  ]);
});

test("the last one that closes is noticed by all who wait for it", async () => {
  await gate.empty();
  const [first, second] = [open("192.0.2.1"), open("192.0.2.2")];
  let noticed = 0;
  for (let i = 0; i < 2; i++) void gate.empty().then(() => noticed++);
  first.close();
  await Promise.resolve();
  expect(noticed).toBe(0);
  second.close();
  await new Promise(setImmediate);
  expect(noticed).toBe(2);
  await gate.empty();
});

test("a new connection takes the place of one that waits, and of its own client where that is at its limit", () => {
  const [first] = [open("192.0.2.1"), open("192.0.2.1")];
  const other = open("192.0.2.2");
  waiting = [other, first];
  expect(admitted("192.0.2.1")).toEqual([true]);
  expect([gate.clientConnections, asked]).toEqual([3, [[1, 1]]]);
  waiting = [other];
  expect(admitted("192.0.2.3", "192.0.2.4", "192.0.2.5")).toEqual([true, true, true]);
  expect([gate.clientConnections, asked.slice(1)]).toEqual([5, [[1, 1]]]);
  // Their places are others' by now.
  first.close();
  other.close();
  expect([gate.clientConnections, gate.clients]).toEqual([5, 4]);
  const instead = "new connections take the place of connections that wait for a request";
  expect(warnings).toEqual([
    `limits.connectionsPerClientMax (2) is reached by 192.0.2.1: ${instead}`,
    `limits.connectionsMax (5) is reached: ${instead}`,
  ]);
});

test("a client that may have no more costs no other client a connection", () => {
  const all = ["192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"].map(open);
  waiting = all.slice(2);
  expect(admitted("192.0.2.1", "192.0.2.1")).toEqual([false, false]);
  expect([gate.clientConnections, gate.clients]).toEqual([5, 4]);
});

test("where no connection waits, nobody looks for one more than a few times a second", () => {
  const now = jest.spyOn(performance, "now").mockReturnValue(1_000);
  for (let i = 1; i <= 5; i++) open(`192.0.2.${i}`);
  for (let i = 10; i < 30; i++) expect(admitted(`192.0.2.${i}`)).toEqual([false]);
  expect(asked).toHaveLength(1);
  now.mockReturnValue(1_300);
  expect(admitted("192.0.2.30")).toEqual([false]);
  expect(asked).toHaveLength(2);
});

test("one that was ended makes room once, also before it is closed", () => {
  const all = [1, 2, 3, 4, 5].map((i) => open(`192.0.2.${i}`));
  waiting = all.slice(0, 1);
  expect(admitted("192.0.2.6", "192.0.2.7")).toEqual([true, false]);
  expect(gate.clientConnections).toBe(5);
});

test("the connections of a proxy before this one make no room for a client of its network", () => {
  const proxy = open(PROXY);
  for (let i = 0; i < 2; i++) open("192.0.2.1");
  waiting = [proxy];
  expect(admitted("192.0.2.1")).toEqual([false]);
});
