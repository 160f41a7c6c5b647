import { runTransfers } from "./transfer.js";

/** `npm run big-transfer [GIB]`: large files up and down over TLS, with checksums, memory and disk watched. */
const GIB = 2 ** 30;
const gib = Number(process.argv[2] ?? 5);
/** Larger than any window or buffer, far smaller than the file. */
const MEMORY_GROWTH_MAX = 256 * 2 ** 20;
const DISK_WRITTEN_MAX = 2 ** 20;

async function main(): Promise<void> {
  if (!(gib > 0)) throw new Error(`give the size in GiB, not ${process.argv[2]}`);
  let failed = false;
  console.log(`${gib} GiB each way, through /synchttp over TLS`);
  for (const t of await runTransfers(Math.round(gib * GIB))) {
    const ok = t.intact && t.memoryGrowth <= MEMORY_GROWTH_MAX && t.diskWritten <= DISK_WRITTEN_MAX;
    failed ||= !ok;
    console.log(
      `${ok ? "ok  " : "FAIL"} ${t.protocol.padEnd(8)} ${t.direction.padEnd(8)} ` +
        `${t.intact ? "intact" : "DAMAGED"}, ${(t.bytes / 1e6 / t.seconds).toFixed(0)} MB/s, ` +
        `memory +${(t.memoryGrowth / 2 ** 20).toFixed(0)} MiB, disk ${t.diskWritten} bytes`,
    );
  }
  process.exitCode = failed ? 1 : 0;
}

void main();
