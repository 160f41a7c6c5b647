import { type ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { request as ask } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { eventually } from "../../testkit/waiting.js";
import { hashOf, overHttp1 } from "./clients.js";
import { Service } from "./service.js";
import { Store } from "./store.js";

/** `portico quiesce` beside one slow upload, and fifty clients that write all the time. */

const WRITERS = 50;
const REFUSE_MS = 3_000;
/** Looks, and a machine with other work. */
const MORE_MS = 2_000;

let store: Store;
let service: Service;

beforeAll(async () => {
  store = await new Store().listen();
  service = await Service.start(store.url);
}, 60_000);

afterAll(async () => {
  await service.end();
  await store.close();
});

const file = (name: string): string => join(service.folder, name);
/** When the command began or ended, in milliseconds since 1970. */
const timeIn = (name: string): number => Number(readFileSync(file(name), "utf8")) / 1e6;

interface Ended {
  readonly code: number | null;
  readonly errors: string;
  readonly ms: number;
}

async function quiesce(...options: string[]): Promise<Ended> {
  for (const name of ["begin", "end"]) rmSync(file(name), { force: true });
  const begun = performance.now();
  const script = `date +%s%N >${file("begin")}; sleep 0.5; date +%s%N >${file("end")}`;
  const given = ["--refuse", `${REFUSE_MS / 1_000}s`, "--wait", "2m", ...options];
  const child: ChildProcess = service.quiesce(script, given);
  let errors = "";
  child.stderr!.on("data", (text: Buffer) => (errors += text.toString()));
  const [code] = (await once(child, "exit")) as [number | null];
  return { code, errors, ms: performance.now() - begun };
}

/** Many clients, each with one small upload after the other. */
class Writers {
  /** When any of them was refused, in milliseconds since 1970. */
  readonly refusals: number[] = [];
  readonly odd: number[] = [];
  stored = 0;
  private going = true;
  private readonly all: Promise<void>[];

  constructor(name: string) {
    this.all = Array.from({ length: WRITERS }, (_, i) => this.write(`/${name}/${i}`));
  }

  async end(): Promise<void> {
    this.going = false;
    await Promise.all(this.all);
  }

  private async write(target: string): Promise<void> {
    const client = overHttp1(service.plainPort);
    for (let i = 0; this.going; i++) {
      const body = randomBytes(1 + ((i * 7_919) % 20_000));
      const { status } = await client.send(`${target}/${i}`, body, i % 2 === 0);
      if (status === 503) this.refusals.push(Date.now());
      else if (status === 201 && digestOf(`${target}/${i}`) === hashOf(body)) this.stored++;
      else this.odd.push(status);
      await sleep(100);
    }
    client.close();
  }
}

const digestOf = (target: string): string | undefined =>
  store.writes.find((one) => one.target === target)?.digest;

/** Sends random bytes piece by piece, until they are sent or a response comes; the last ones only if it hurries. */
class SlowUpload {
  private readonly body: Buffer;
  readonly ended: Promise<{ readonly status: number; readonly retryAfter: string | undefined }>;
  hurries = false;

  constructor(
    readonly target: string,
    bytes: number,
    bytesPerSecond: number,
    private readonly heldBytes = 0,
  ) {
    this.body = randomBytes(bytes);
    const headers = { "Content-Length": bytes, "User-Agent": "rclone/v1.68.1" };
    const sent = ask({
      ...{ port: service.plainPort, host: "127.0.0.1", method: "PUT", path: target },
      ...{ headers, agent: false },
    });
    this.ended = new Promise((resolve, reject) => {
      sent.on("response", (response) => {
        response.resume();
        resolve({ status: response.statusCode!, retryAfter: response.headers["retry-after"] });
      });
      sent.on("error", reject);
    });
    void this.send(sent, Math.ceil(bytesPerSecond / 4));
  }

  get stored(): boolean {
    return digestOf(this.target) === hashOf(this.body);
  }

  private async send(to: ReturnType<typeof ask>, pieceBytes: number): Promise<void> {
    let over = false;
    void this.ended.then(
      () => (over = true),
      () => (over = true),
    );
    const { length } = this.body;
    for (let at = 0; at < length && !over; await sleep(250)) {
      const end = this.hurries ? length : Math.min(at + pieceBytes, length - this.heldBytes);
      to.write(this.body.subarray(at, end));
      at = end;
    }
    if (!over) to.end();
    else to.destroy();
  }
}

const running = (target: string): boolean => store.writes.some((one) => one.target === target);

test("a slow upload is named and goes on, and nobody else is refused", async () => {
  const slow = new SlowUpload("/photos/holiday.jpg", 40_000, 8);
  await eventually(() => running(slow.target), "for the upload");
  const writers = new Writers("give-up");
  const { code, errors, ms } = await quiesce();
  await writers.end();
  expect([code, errors]).toEqual([
    124,
    expect.stringMatching(
      /^quiesce failed: the client of 1 request sent less than 500 bytes a second for 30 s; the command was not run\n {2}PUT \/…\/holiday\.jpg of 127\.0\.0\.1 \(rclone\/v1\.68\.1\): \d+ B of 40 kB in \d+ s\n$/,
    ),
  ]);
  expect(ms).toBeLessThan(45_000);
  expect([writers.refusals, writers.odd, existsSync(file("begin"))]).toEqual([[], [], false]);
  expect(writers.stored).toBeGreaterThan(WRITERS);
  slow.hurries = true;
  expect((await slow.ended).status).toBe(201);
  expect(slow.stored).toBe(true);
}, 120_000);

test("a slow upload is cut where that is wanted, and the others are refused only at the end", async () => {
  const slow = new SlowUpload("/photos/holiday-2.jpg", 40_000, 8);
  await eventually(() => running(slow.target), "for the upload");
  const writers = new Writers("cut");
  const { code, errors, ms } = await quiesce("--slow", "cut");
  await sleep(1_000);
  await writers.end();
  expect([code, errors]).toEqual([0, ""]);
  expect(ms).toBeLessThan(60_000);
  expect(await slow.ended).toEqual({ status: 503, retryAfter: "10" });
  expect(slow.stored).toBe(false);
  const [begin, end] = [timeIn("begin"), timeIn("end")];
  for (const one of store.writes) expect(one.begin < end && one.end! > begin).toBe(false);
  expect(writers.odd).toEqual([]);
  expect(writers.refusals.length).toBeGreaterThan(0);
  expect(Math.min(...writers.refusals)).toBeGreaterThan(begin - REFUSE_MS - MORE_MS);
  expect(Math.max(...writers.refusals)).toBeLessThan(end + MORE_MS);
  expect(service.errors).toContain(
    "ended for portico quiesce: its client sent less than 500 bytes a second for 30 s",
  );
}, 120_000);

test("an honest slow upload ends, and then the command runs", async () => {
  const slow = new SlowUpload("/photos/holiday-3.jpg", 40_000, 1_000);
  await eventually(() => running(slow.target), "for the upload");
  const writers = new Writers("honest");
  const { code, errors } = await quiesce("--slow", "cut");
  await sleep(1_000);
  await writers.end();
  expect([code, errors, (await slow.ended).status, slow.stored]).toEqual([0, "", 201, true]);
  const [begin, end] = [timeIn("begin"), timeIn("end")];
  for (const one of store.writes) expect(one.begin < end && one.end! > begin).toBe(false);
  expect(writers.odd).toEqual([]);
  expect(Math.min(...writers.refusals)).toBeGreaterThan(begin - REFUSE_MS - MORE_MS);
}, 120_000);

test("an upload that ends later than expected: the others are refused for a short time, now and then", async () => {
  const late = new SlowUpload("/photos/late.jpg", 40_000, 80_000, 1);
  await eventually(() => running(late.target), "for the upload");
  await sleep(1_000);
  const writers = new Writers("late");
  const { code, errors } = await quiesce("--refuse", "1s", "--wait", "8s");
  await sleep(1_000);
  await writers.end();
  expect([code, errors]).toEqual([
    124,
    expect.stringMatching(
      /^quiesce failed: after 8 s requests that write were still in progress: .*\n {2}PUT \/…\/late/,
    ),
  ]);
  expect([writers.odd, existsSync(file("begin"))]).toEqual([[], false]);
  const times = writers.refusals.sort((a, b) => a - b);
  const begins = times.filter((at, i) => i === 0 || at - times[i - 1]! > 2_000);
  // A first time, 4 s after its end a second time, and there is no time for a third; a busy machine may reach one only.
  expect(begins.length).toBeGreaterThanOrEqual(1);
  expect(begins.length).toBeLessThanOrEqual(2);
  for (const begin of begins) {
    const same = times.filter((at) => at >= begin && at < begin + 4_000);
    expect(same.at(-1)! - begin).toBeLessThan(1_000 + MORE_MS);
  }
  late.hurries = true;
  expect([(await late.ended).status, late.stored]).toEqual([201, true]);
}, 60_000);
