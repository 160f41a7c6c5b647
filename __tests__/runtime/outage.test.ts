import { setTimeout as sleep } from "node:timers/promises";
import { coarseNow, sweepRegularly } from "../../src/runtime/sockets/deadlines.js";
import { type WaitingRequest, Outage } from "../../src/runtime/upstream/outage.js";

/** How long requests wait for an upstream that refuses connections. */

test("the error log never says a longer time than the request took", async () => {
  const stop = sweepRegularly({ sweep: () => undefined, onFault: () => undefined });
  // The coarse clock is nearly as late as it can be.
  while (performance.now() - coarseNow() < 200) await sleep(5);
  const outage = new Outage(performance.now(), 1_000, "refused", {
    tryAgain: () => undefined,
    onFault: () => undefined,
  });
  const held: WaitingRequest = { heldSince: undefined };
  const began = performance.now();
  outage.admit(held);
  while (performance.now() - coarseNow() > 100) await sleep(5);
  const said = Number(/held for (\d+) ms/.exec(outage.refusal(held))![1]);
  const took = performance.now() - began;
  outage.stop();
  stop();
  expect(said).toBeGreaterThan(0);
  expect(said).toBeLessThanOrEqual(Math.ceil(took));
});
