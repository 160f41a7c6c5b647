import { type Handover, Predecessor } from "../../src/runtime/supervisor/handover.js";

/** The old master, as a new one asks it and is asked by it. The channel between them is this process's own. */

let said: unknown[];
const { connected, send } = process;
beforeEach(() => {
  said = [];
  process.env["PORTICO_SUCCESSOR"] = "1";
  process.connected = true;
  process.send = (message: unknown, ...more: unknown[]) => {
    said.push(message);
    (more.at(-1) as () => void)();
    return true;
  };
});
afterEach(() => {
  for (const event of ["message", "disconnect"]) process.removeAllListeners(event);
  Object.assign(process, { connected, send });
  delete process.env["PORTICO_SUCCESSOR"];
});

const hear = (message: object): void => void process.emit("message", message, undefined);

test("is there once, where a master has started this process", () => {
  expect(Predecessor.ofThisProcess()).toBeDefined();
  expect(Predecessor.ofThisProcess()).toBeUndefined();
  process.env["PORTICO_SUCCESSOR"] = "1";
  Object.assign(process, { send: undefined });
  expect(Predecessor.ofThisProcess()).toBeUndefined();
});

test("is told what becomes of its successor, and to open its logs anew", async () => {
  const old = Predecessor.ofThisProcess()!;
  old.ready();
  old.tookOver();
  old.broadcast({ type: "reopenLogs" });
  old.broadcast({ type: "ticketKeys", ticketKeys: "not its own any more" });
  old.drain();
  old.stop();
  await old.failed([]);
  expect(said).toEqual([
    { type: "started", pid: process.pid },
    ...["ready", "tookOver", "reopenLogs", "drain", "stop"].map((type) => ({ type })),
    { type: "failed", problems: [] },
  ]);
});

test("hands over, and orders what it was asked for itself", async () => {
  const old = Predecessor.ofThisProcess()!;
  const orders: unknown[] = [];
  old.orders = {
    drain: (delayed) => void orders.push(["drain", delayed]),
    stop: () => void orders.push("stop"),
  };
  const start = { type: "start", sockets: [], ticketKeys: "keys", generation: 3 };
  hear(start);
  expect(await old.handover).toEqual(start as Handover);
  hear({ type: "drain" });
  hear({ type: "drain", delayed: true });
  hear({ type: "stop" });
  expect(orders).toEqual([["drain", false], ["drain", true], "stop"]);
  hear({ type: "takeOver" });
  await old.takeOver;
});

test("that dies leaves everything to its successor", async () => {
  const old = Predecessor.ofThisProcess()!;
  process.connected = false;
  process.emit("disconnect");
  expect(await old.handover).toBeUndefined();
  await Promise.all([old.takeOver, old.gone]);
  await old.failed([]);
  expect(said).toEqual([{ type: "started", pid: process.pid }]);
});
