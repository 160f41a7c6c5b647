import { setTimeout as sleep } from "node:timers/promises";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { patternChunk, patternHash } from "../../testkit/load/pattern.js";
import { eventually } from "../../testkit/waiting.js";
import { demand } from "./checks.js";
import { fetchAsClient, runAsClient } from "./clients.js";
import { NODE_ADDRESS } from "./cluster.js";
import type { Scene } from "./scene.js";
import { LOAD_PATH } from "./site.js";

const UPLOADS = 12;
const UPLOAD_BYTES = 3_000_000;
const UPLOAD_SECONDS = 15;

/**
 * A pod whose process is killed takes the uploads with it that it was passing on: no proxy can prevent that. Those of
 * the other pods are untouched.
 */
export async function killedProcess(scene: Scene, folder: string): Promise<string> {
  const { https } = await scene.nodePorts();
  const url = `https://${NODE_ADDRESS}:${https}${LOAD_PATH}`;
  const file = join(folder, "upload");
  writeFileSync(file, pattern(UPLOAD_BYTES));
  const pace = ["--http1.1", "--limit-rate", String(UPLOAD_BYTES / UPLOAD_SECONDS), "-T", file];
  // Names of their own, since the upstream remembers all that ever began.
  const names = Array.from({ length: UPLOADS }, (_, i) => `${Date.now()}-${i}`);
  const uploads = names.map((name) => runAsClient("curl", "-sSk", ...pace, `${url}/named?${name}`));
  let began: Record<string, string> = {};
  await eventually(
    async () => {
      began = JSON.parse(await fetchAsClient(`${url}/began`)) as Record<string, string>;
      return names.every((name) => began[name] !== undefined);
    },
    "for all uploads to begin",
    { everyMs: 200 },
  );
  const pods = await scene.serving();
  const victim = pods.find(({ address }) => names.some((name) => began[name] === address))!;
  process.kill(await scene.processOf(victim), "SIGKILL");
  const { failedMs, tried, failed } = await newConnections(`${url}/small`);
  const results = await Promise.all(uploads);
  const hash = patternHash(UPLOAD_BYTES);
  const whole = (i: number): boolean => results[i]!.code === 0 && results[i]!.out === hash;
  const passing = names.map((name) => began[name] === victim.address);
  const others = passing.filter((through) => !through).length;
  const survived = names.filter((_, i) => !passing[i] && whole(i)).length;
  const cut = names.filter((_, i) => passing[i] && !whole(i)).length;
  demand(others > 0, "all uploads went through one pod");
  demand(survived === others, `only ${survived} of ${others} uploads through other pods arrived`);
  await scene.settled();
  return `all ${others} uploads through other pods arrived, the ${cut} of ${UPLOADS - others} through the killed one were cut; ${failed} of ${tried} new connections failed, the last after ${failedMs} ms`;
}

const WATCHED_MS = 8_000;

/** Asks on a new connection again and again; how many failed, and for how long. */
async function newConnections(url: string) {
  const from = Date.now();
  let failedMs = 0;
  let tried = 0;
  let failed = 0;
  while (Date.now() - from < WATCHED_MS) {
    tried++;
    const at = Date.now();
    const { code, out } = await runAsClient("curl", "-sSk", "--max-time", "5", url);
    if (code !== 0 || out !== "small\n") {
      failed++;
      failedMs = at - from;
    }
    await sleep(50);
  }
  return { failedMs, tried, failed };
}

function pattern(bytes: number): Buffer {
  const step = 65_536;
  const chunks: Buffer[] = [];
  for (let at = 0; at < bytes; at += step) chunks.push(patternChunk(at, Math.min(step, bytes - at)));
  return Buffer.concat(chunks);
}
