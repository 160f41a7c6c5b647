import { laboratory, numberOf } from "../../testkit/laboratory.js";
import { DISK_WRITTEN_MAX, MEMORY_GROWTH_MAX, runTransfers } from "./transfer.js";

const GIB = 2 ** 30;

laboratory(
  "npm run big-transfer: large files up and down over TLS, with checksums, memory and disk watched",
  { gib: ["5", "size in GiB"] },
  async (given) => {
    const transfers = await runTransfers(Math.round(numberOf("gib", given.gib, "part") * GIB));
    const wrong = transfers.flatMap((t) => {
      const grown = `memory +${(t.memoryGrowth / 2 ** 20).toFixed(0)} MiB`;
      const speed = `${(t.bytes / 1e6 / t.seconds).toFixed(0)} MB/s`;
      const what = `${t.protocol} ${t.direction}: ${t.intact ? "intact" : "DAMAGED"}, ${speed}, ${grown}, disk ${t.diskWritten} bytes`;
      console.log(what);
      return t.intact && t.memoryGrowth <= MEMORY_GROWTH_MAX && t.diskWritten <= DISK_WRITTEN_MAX
        ? []
        : [what];
    });
    return { wrong };
  },
);
