import { limits } from "../../src/model/schema/limits.js";
import { connectionsWithin, limitsWithin, workersWithin } from "../../src/model/host/workerMemory.js";

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
  [0, 1, 16, 1],
  [46, 1, 16, 1],
  [53, 1, 16, 2],
  [4_102, 1, 16, 1_236],
  [4_101, 1, 16, 1_235],
  [4_660, 2, 16, 700],
  [4_656, 2, 16, 699],
  [4_100, 1, 128, 300],
  // Uploads of HTTP/1.1 over TLS cost more than the only stream.
  [256, 1, 1, 64],
])("%d MiB and %s workers of %s streams have room for %d connections each", (mib, workers, streams, all) => {
  const stays = { headBytesMax: 32_768, concurrentStreamsMax: streams };
  expect(connectionsWithin(mib * MIB, workers, stays)).toBe(all);
});

describe("limits that follow from memory", () => {
  const ALL = limits.parse({});

  test.each([
    ["a small virtual server", 240, 1, {}, [59, 30, 16]],
    ["two workers", 512, 2, {}, [68, 34, 16]],
    ["room for many connections is for more streams", 8_192, 1, {}, [1_034, 517, 68]],
    ["no more streams and connections than in any memory", 1_048_576, 1, {}, [16_384, 4_096, 128]],
    ["connections that suit the config's own streams", 512, 1, { concurrentStreamsMax: 128 }, [34, 17, 128]],
    ["streams that suit the config's own connections", 512, 1, { connectionsMax: 100 }, [100, 4_096, 33]],
    ["no fewer streams than are useful", 512, 1, { connectionsMax: 9_000 }, [9_000, 4_096, 16]],
    ["one client's own limit", 512, 1, { connectionsPerClientMax: 9 }, [142, 9, 16]],
    ["heads of their own length", 512, 1, { headBytesMax: 262_144 }, [56, 28, 16]],
    ["less than one connection takes", 40, 1, {}, [1, 1, 16]],
  ])("%s", (_, mib, workers, given, [connections, perClient, streams]) => {
    const found = limitsWithin(mib * MIB, workers, { ...ALL, ...given }, Object.keys(given));
    expect(found).toMatchObject({
      connectionsMax: connections,
      connectionsPerClientMax: perClient,
      concurrentStreamsMax: streams,
    });
  });

  test.each([128, 256, 1_024, 8_192, 65_536])("fit %i MiB, and are useful", (mib) => {
    for (const workers of [1, 2, 4, 16]) {
      if (workers > workersWithin(mib * MIB)) continue;
      const found = limitsWithin(mib * MIB, workers, ALL, []);
      const fit = connectionsWithin(mib * MIB, workers, { ...ALL, ...found });
      expect(found.connectionsMax).toBeLessThanOrEqual(fit);
      expect(found.connectionsMax * workers).toBeGreaterThanOrEqual(24);
      expect(found.concurrentStreamsMax).toBeGreaterThanOrEqual(16);
    }
  });
});
