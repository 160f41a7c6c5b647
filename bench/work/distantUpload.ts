import { alternate, type Bench, costOf, type Sample } from "../lib/bench.js";
import { run, stop } from "../lib/children.js";
import { startHelper } from "../lib/helpers.js";
import { SMALL_UPLOAD_BYTES } from "../lib/site.js";
import type { RunningProxy } from "../lib/proxy.js";
import type { Work } from "../lib/work.js";

/** How far away the client is: half of it in each direction. */
const ROUND_TRIP_MS = 50;

/**
 * What receive windows are for: a client far away may send only as much as was granted, and waits a round trip for
 * more. The connection is up and has carried a request before, so that it is the upload that is timed.
 */
export const distantUpload: Work = {
  name: "upload-http2-50ms",
  what: `upload of 8 MB over HTTP/2 with ${ROUND_TRIP_MS} ms of added round trip`,
  unit: "MB/s",
  by: "clock",
  bars: [{ to: "nginx", limit: 40, atLeast: true }],
  run: (bench) =>
    alternate(bench, { mode: "tls", ability: "http2", rounds: Math.min(bench.rounds, 3) }, (proxy) =>
      upload(bench, proxy),
    ),
};

async function upload(bench: Bench, proxy: RunningProxy): Promise<Sample> {
  const relay = startHelper("relay", [proxy.port, ROUND_TRIP_MS / 2], bench.loadCores);
  try {
    const { port } = await relay.next(15_000);
    const origin = `https://127.0.0.1:${port}`;
    const each = ["-sSk", "--http2", "-o", "/dev/null", "--max-time", "60"];
    const write =
      "%{http_code} %{http_version} %{size_upload} %{num_connects} %{time_pretransfer} %{time_total}";
    const { result, circumstances } = await costOf(proxy, () =>
      run(
        [
          ...["curl", ...each, `${origin}/sync/small`, "--next", ...each, "-w", write],
          ...["-T", bench.site.smallUpload, `${origin}/syncdav/file`],
        ],
        { cores: bench.loadCores, limitMs: 130_000 },
      ),
    );
    const [status, version, bytes, connects, before, total] = result.stdout.split(" ").map(Number);
    if (status !== 200 || version !== 2 || bytes !== SMALL_UPLOAD_BYTES || connects !== 0) {
      throw new Error(`curl against ${proxy.name}: ${result.stdout} ${result.stderr}`);
    }
    return { value: SMALL_UPLOAD_BYTES / 1e6 / (total! - before!), ...circumstances };
  } finally {
    await stop(relay.child);
  }
}
