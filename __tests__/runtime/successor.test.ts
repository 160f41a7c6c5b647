import { chmodSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Problem } from "../../src/model/index.js";
import { type Handover, Successor } from "../../src/runtime/supervisor/handover.js";
import { isDone, ONLY_TIMEOUTS } from "../../proof/kit/fakeTimers.js";
import { alive } from "../../proof/kit/portico.js";
import { eventually } from "../../proof/kit/waiting.js";

/** A new master, as the old one starts, asks and ends it. Here it is a script in place of Node. */

/** Descriptor 3 is Node's channel: a line of JSON each way. */
const SCRIPT = `#!/bin/sh
say() { echo "{\\"type\\":\\"$1\\"}" >&3; }
trap 'echo reopen >> FOLDER/got; again=1' USR1
echo "{\\"type\\":\\"started\\",\\"pid\\":$$}" >&3
. FOLDER/mode
while :; do
  if read -r line <&3; then echo "$line" >> FOLDER/got
  elif [ "$again" != 1 ]; then exit 7
  fi
  again=
done
`;

let folder: string;
let orders: string[];
let fds: number[];
const all: Successor[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "portico-successor-"));
  [orders, fds] = [[], []];
  writeFileSync(join(folder, "node"), SCRIPT.replaceAll("FOLDER", folder));
  chmodSync(join(folder, "node"), 0o755);
  writeFileSync(join(folder, "got"), "");
  mode("");
  jest.useFakeTimers(ONLY_TIMEOUTS);
});
afterEach(async () => {
  for (const one of all) one.signal("SIGKILL");
  await Promise.all(all.splice(0).map(({ gone }) => gone));
  jest.useRealTimers();
  for (const fd of fds) closeSync(fd);
  rmSync(folder, { recursive: true });
});

const mode = (commands: string): void => writeFileSync(join(folder, "mode"), `${commands}\n`);
const got = (): string[] => readFileSync(join(folder, "got"), "utf8").split("\n").slice(0, -1);

function successor(more: Partial<Handover> = {}, node = join(folder, "node")): Successor {
  const handover = { sockets: [], ticketKeys: "keys", generation: 3, ...more };
  const one = new Successor(
    { node, runtime: "/r" },
    handover,
    { NOTIFY_SOCKET: "/n" },
    {
      drain: () => void orders.push("drain"),
      stop: () => void orders.push("stop"),
      reopenLogs: () => void orders.push("reopenLogs"),
    },
  );
  all.push(one);
  return one;
}

const failed = (how: string) => [
  expect.objectContaining({
    code: "serve.upgrade-failed",
    path: "",
    message: `the new master ${how}`,
  }) as Problem,
];

test("gets what the old one has, and is asked step by step", async () => {
  fds = ["/dev/null", "/dev/zero", "/dev/full"].map((path) => openSync(path, "r"));
  mode(`echo "$*" "$PORTICO_SUCCESSOR" "$NOTIFY_SOCKET" >> ${folder}/got
    for fd in 4 5 6; do readlink /proc/$$/fd/$fd >> ${folder}/got; done; say ready`);
  const sockets = [
    { fd: fds[0]!, key: "a" },
    { fd: fds[1]!, key: "b" },
  ] as unknown as Handover["sockets"];
  const one = successor({ sockets, health: { fd: fds[2]!, key: "h" }, ticketKeysUntil: 7 });
  expect(await one.ready()).toEqual([]);
  await eventually(() => got().length === 5);
  expect(got()[0]).toMatch(/\/r .*1 \/n$/);
  expect(got().slice(1, 4)).toEqual(["/dev/null", "/dev/zero", "/dev/full"]);
  expect(JSON.parse(got()[4]!)).toEqual({
    ...{ type: "start", ticketKeys: "keys", ticketKeysUntil: 7, generation: 3 },
    sockets: [
      { fd: 4, key: "a" },
      { fd: 5, key: "b" },
    ],
    health: { fd: 6, key: "h" },
  });
  const pid = one.pid!;
  await one.detach();
  await one.detach();
  expect(alive(pid)).toBe(true);
  const taken = one.takeOver();
  one.drain();
  one.drain(true);
  one.stop();
  await eventually(() => got().length === 9);
  expect(
    got()
      .slice(5)
      .map((line) => JSON.parse(line) as object),
  ).toEqual([
    { type: "takeOver" },
    { type: "drain", delayed: false },
    { type: "drain", delayed: true },
    { type: "stop" },
  ]);
  one.broadcast({ type: "ticketKeys", ticketKeys: "x" });
  one.broadcast({ type: "reopenLogs" });
  await eventually(() => got().length === 10);
  expect(got()[9]).toBe("reopen");
  jest.advanceTimersByTime(9_999);
  expect([await isDone(taken), alive(pid)]).toEqual([false, true]);
  jest.advanceTimersByTime(1);
  expect(await taken).toEqual(failed("did not answer within 10 s"));
  await one.gone;
  expect(await one.takeOver()).toEqual(failed("ended"));
  one.signal("SIGTERM");
  await one.detach();
});

test("that says nothing is killed after a minute", async () => {
  const one = successor();
  const ready = one.ready();
  await eventually(() => got().length === 1);
  jest.advanceTimersByTime(59_999);
  expect([await isDone(ready), alive(one.pid!)]).toEqual([false, true]);
  jest.advanceTimersByTime(1);
  expect(await ready).toEqual(failed("did not answer within 60 s"));
  await one.gone;
  expect(alive(one.pid!)).toBe(false);
});

test("that says something in time is not", async () => {
  mode("say ready");
  const one = successor();
  expect(await one.ready()).toEqual([]);
  jest.advanceTimersByTime(120_000);
  await eventually(() => got().length === 1);
  expect(alive(one.pid!)).toBe(true);
});

test.each<[string, () => string]>([
  ["exited with code 4", () => (mode("exit 4"), "node")],
  ["exited with code 200", () => (mode("exit 200"), "node")],
  ["was killed by SIGKILL", () => (mode("kill -9 $$"), "node")],
  ["could not be started: no program at FOLDER/none", () => "none"],
  ["could not be started: no program at FOLDER/mode", () => "mode"],
])("that %s is no new master", async (how, prepare) => {
  const one = successor({}, join(folder, prepare()));
  const ready = one.ready();
  expect(await ready).toEqual(failed(how.replace("FOLDER", folder)));
  await one.gone;
  expect(orders).toEqual([]);
});

test("whose channel is closed is gone", async () => {
  mode("exec sleep 30 3>&-");
  const one = successor();
  await eventually(() => one.pid !== undefined);
  const ready = one.ready();
  await one.detach();
  expect(await ready).toEqual(failed("is gone"));
  process.kill(one.pid!, "SIGKILL");
});

test("says what is wrong with it, or what the old one has to do", async () => {
  const problem = { code: "c", path: "p", message: "m", fix: "f" };
  mode(`echo '${JSON.stringify({ type: "failed", problems: [problem] })}' >&3`);
  expect(await successor().ready()).toEqual([problem]);
  mode("say reopenLogs; say stop; say drain");
  expect(await successor().ready()).toEqual(failed("was asked to stop"));
  expect(orders).toEqual(["reopenLogs", "stop", "drain"]);
});
