import { connectionsWithin, workersWithin } from "../../src/model/workerMemory.js";

/** What fits into a memory, by the figures of docs/limits.md. */

const MIB = 1_048_576;

test.each([
  [0, 1],
  [160 * MIB, 1],
  [224 * MIB - 1, 1],
  [224 * MIB, 2],
  [288 * MIB, 3],
])("%d bytes have room for %d workers", (bytes, workers) => {
  expect(workersWithin(bytes)).toBe(workers);
});

test.each([
  [0, 1, 1],
  [36, 1, 1],
  [40, 1, 2],
  [4_096, 1, 2_175],
  [4_095, 1, 2_174],
  [4_140, 2, 1_095],
  [4_139, 2, 1_094],
])("%d MiB and %s workers have room for %d connections each", (mib, workers, connections) => {
  expect(connectionsWithin(mib * MIB, workers)).toBe(connections);
});
