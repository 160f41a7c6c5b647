import { setTimeout as sleep } from "node:timers/promises";
import { sweepRegularly } from "../src/runtime/sockets/deadlines.js";

/**
 * Deadlines that pass without being waited for, where the runtime runs in the test's own process: its clock runs ahead
 * of the real one. For tests: who imports this file has it, and nothing of it is in the runtime.
 */
const { now } = performance;
const { setInterval: every } = globalThis;
let ahead = 0;

/**
 * Apart from leaps, time passes in turns of the event loop: one that takes long on a busy machine lets no deadline of a
 * second pass while what was sent before it has not been read.
 */
const TICK_MS = 10;
const TICK_MS_MAX = 2 * TICK_MS;
let passed = now.call(performance);
let ticked = passed;
const ticking = every(() => {
  const real = now.call(performance);
  passed += Math.min(real - ticked, TICK_MS_MAX);
  ticked = real;
}, TICK_MS);
performance.now = () => passed + ahead;
// The next suite of the same worker process has the same `performance`.
afterAll(() => {
  clearInterval(ticking);
  const gained = performance.now() - now.call(performance);
  performance.now = () => now.call(performance) + gained;
});

/** Nobody waits for a sweep either: there is one every few milliseconds. */
globalThis.setInterval = ((step: () => void, ms: number) =>
  every(step, ms === 250 ? 10 : ms)) as typeof every;

/** Between two sweeps no more passes than this, so that what follows from one deadline is there before the next. */
const STEP_MS = 5_000;

/** What was sent before has arrived after so many turns of the loop; on a busy machine one turn may take any time. */
const ARRIVES_TURNS = 10;
const TURN_MS = 10;

/** Has so many milliseconds pass for every deadline, and all of them looked at. */
export async function pass(ms: number): Promise<void> {
  for (let turn = 0; turn < ARRIVES_TURNS; turn++) await sleep(TURN_MS);
  for (let left = ms; left > 0; left -= STEP_MS) {
    ahead += Math.min(left, STEP_MS);
    // The first may have begun before the leap.
    await swept();
    await swept();
  }
}

/** The end of the next sweep: who came last is swept last. */
function swept(): Promise<void> {
  return new Promise((resolve) => {
    const stop = sweepRegularly({
      sweep: () => {
        stop();
        resolve();
      },
      onFault: () => undefined,
    });
  });
}
