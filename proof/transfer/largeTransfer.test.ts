import { DISK_WRITTEN_MAX, MEMORY_GROWTH_MAX, runTransfers } from "./transfer.js";

/** The 5 GiB script (`npm run big-transfer`) at a size for the suite: a multiple of the memory that may be added. */
const BYTES = 2 * MEMORY_GROWTH_MAX;

test("large files arrive intact over TLS, HTTP/1.1 and HTTP/2, with memory flat and nothing on disk", async () => {
  const transfers = await runTransfers(BYTES);
  expect(transfers.map((t) => [t.protocol, t.direction, t.intact])).toEqual([
    ["HTTP/1.1", "upload", true],
    ["HTTP/1.1", "download", true],
    ["HTTP/2", "upload", true],
    ["HTTP/2", "download", true],
  ]);
  for (const t of transfers) {
    expect([t.protocol, t.direction, t.memoryGrowth <= MEMORY_GROWTH_MAX]).toEqual([
      t.protocol,
      t.direction,
      true,
    ]);
    expect(t.diskWritten).toBeLessThanOrEqual(DISK_WRITTEN_MAX);
  }
});
