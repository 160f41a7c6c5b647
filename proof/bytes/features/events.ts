import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { ControlRequest } from "../../../src/runtime/supervisor/control/control.js";
import { FullListenQueue } from "../../../testkit/fullListenQueue.js";
import { exchange } from "../../../testkit/peers.js";
import { HOST } from "../clients.js";
import { FAILS } from "../upstreams.js";
import type { PlannedEvent } from "./scene.js";
import type { Stage } from "./stage.js";
import { visitorFields } from "./closed.js";

/** When something was so. Times are those of `performance.now`. */
export interface Happening {
  readonly event: PlannedEvent;
  /** From the order for it until its end is confirmed: it may concern an exchange. */
  mayFrom: number;
  mayUntil: number;
  /** From its confirmation until the order to end it: it concerns every exchange. */
  mustFrom: number;
  mustUntil: number;
}

type Play = (stage: Stage, happening: Happening) => Promise<void>;

const now = (): number => performance.now();

const PLAYS: Readonly<Record<PlannedEvent["kind"], Play>> = {
  async outage(stage, happening) {
    const { server, forMs, away } = happening.event;
    const one = stage.servers[server]!;
    const queue =
      one.carrier === "unix" && away === "full" ? await FullListenQueue.make(one.path) : undefined;
    try {
      // Until now, the server was there.
      happening.mayFrom = now();
      await one.kill();
      queue?.takePlace();
      await sleep(forMs);
    } finally {
      queue?.end();
    }
    await one.up();
  },

  /** A client sends requests that every server fails, in one moment: how often each is sent is in docs/upstreams.md. */
  async unanswered(stage) {
    // With another server away none may be left for a request that one has failed.
    const may503 = (): boolean =>
      stage.scene.features.includes("maintenance") || stage.servers.some(({ isUp }) => !isUp);
    const fail = async (id: string): Promise<void> => {
      const fields = { Host: HOST, ...visitorFields(stage.scene.features, { seed: 0 }), Connection: "close" };
      const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
      const head = `GET /web/${id} HTTP/1.1\r\n${lines.join("")}\r\n`;
      const may503Before = may503();
      const { status } = await exchange(stage.frontEnd.plainPort, head);
      const times = stage.asked.filter((one) => one === id).length;
      if (status !== 502 && !(status === 503 && (may503Before || may503())))
        throw new Error(`status ${status}`);
      if (times > 2) throw new Error(`one of them was sent ${times} times`);
    };
    await Promise.all(Array.from({ length: FAILED }, (_, i) => fail(`${FAILS}${i}`)));
  },

  async maintenance(stage, happening) {
    await allWorkers(stage, { command: "maintenance", begin: { message: "A scene." } });
    await whileInForce(happening);
    await allWorkers(stage, { command: "maintenance" });
  },

  /** As `portico quiesce` does around its command. */
  async quiesce(stage, happening) {
    const id = randomUUID();
    const terms = { reads: false, minimumRate: 0, cutsSlow: false, refuseMs: LONG_MS, limitMs: LONG_MS };
    await stage.ask({ command: "quiesce", id, begin: terms });
    await stage.ask({ command: "quiesce", id, refuses: true });
    for (;;) {
      const { pauses } = await stage.ask({ command: "quiesce", id });
      const { refusesSince, writes, silent } = pauses!.quiesce!;
      if (refusesSince !== undefined && writes === 0 && silent === 0) break;
      await sleep(POLL_MS);
    }
    await whileInForce(happening);
    await stage.ask({ command: "resume", id });
  },

  async reload(stage) {
    await stage.reload();
  },

  async upgrade(stage) {
    await stage.upgrade();
  },
};

/** Gives the order until no worker is named that did not respond to it: on a busy machine one may take seconds. */
async function allWorkers(stage: Stage, order: ControlRequest): Promise<void> {
  while ((await stage.ask(order)).message.includes("do not respond")) await sleep(POLL_MS);
}

async function whileInForce(happening: Happening): Promise<void> {
  happening.mustFrom = now();
  await sleep(happening.event.forMs);
  happening.mustUntil = now();
}

/** @returns what happens, as it does, and its end */
export function begin(stage: Stage): { happenings: Happening[]; over: Promise<string[]> } {
  const happenings: Happening[] = [];
  const playAll = stage.scene.events.map(async (event): Promise<string[]> => {
    await sleep(event.at);
    const happening = { event, mayFrom: now(), mayUntil: Infinity, mustFrom: Infinity, mustUntil: -Infinity };
    happenings.push(happening);
    try {
      await PLAYS[event.kind](stage, happening);
      return [];
    } catch (error) {
      return [`${event.kind}: ${(error as Error).message}`];
    } finally {
      happening.mayUntil = now();
    }
  });
  return { happenings, over: Promise.all(playAll).then((faults) => faults.flat()) };
}

/** Each of up to three servers usually fails more of them in a row than a server may before it is left out. */
const FAILED = 12;
const LONG_MS = 60_000;
const POLL_MS = 10;
