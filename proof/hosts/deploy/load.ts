import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { build } from "esbuild";
import type { LoadOptions, LoadReport } from "../../../testkit/load/steadyLoad.js";
import type { TestHost } from "../harness/index.js";

/**
 * Starts load from the network outside of a host, on the file server of `application.ts`; resolves when it has begun.
 *
 * @param address of another host in that network, or one that hosts share
 */
export async function startLoad(
  host: TestHost,
  address = host.address,
): Promise<{ stop(): Promise<LoadReport> }> {
  const options: LoadOptions = {
    address,
    httpPort: 80,
    httpsPort: 443,
    host: "load.example",
    path: "/load",
    transferMs: 3000,
    transferBytes: 1_000_000,
    clients: 1,
    // A gap in the service lasts longer than this pause; without one, the load takes more processor time than the apply.
    pauseMs: 20,
  };
  const file = await bundleLoad(host.folder);
  const outside = await host.outside();
  const child = outside.start(`exec ${process.execPath} ${file} load '${JSON.stringify(options)}'`);
  let text = "";
  child.stdout!.on("data", (data) => (text += data));
  child.stderr!.on("data", (data) => (text += data));
  await loading(child, () => text);
  return {
    stop: async () => {
      child.stdin!.end();
      await once(child, "close");
      return JSON.parse(text.slice(text.indexOf("\n") + 1)) as LoadReport;
    },
  };
}

async function loading(child: ChildProcess, text: () => string): Promise<void> {
  while (!text().startsWith("loading\n")) {
    if (child.exitCode !== null) throw new Error(`the load ended: ${text()}`);
    await sleep(50);
  }
}

/** Bundles the load for use in another network, and returns its path. */
async function bundleLoad(folder: string): Promise<string> {
  const outfile = join(folder, "load.js");
  const entryPoints = [join(__dirname, "../../../testkit/load/main.ts")];
  await build({ entryPoints, bundle: true, platform: "node", format: "cjs", outfile });
  return outfile;
}
