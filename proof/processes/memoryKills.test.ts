import { existsSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { createServer, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { everywhere, loopback, oneServer } from "../../testkit/oneServer.js";
import { alive, killAll, openFolder, Portico } from "../../testkit/portico.js";
import { freePort } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";

/** A worker that takes more memory than its control group has, which the kernel kills: a real one, again and again. */

const V1 = "/sys/fs/cgroup/memory";
const V2 = "/sys/fs/cgroup";
const isV1 = existsSync(`${V1}/memory.limit_in_bytes`);
const isV2 =
  existsSync(`${V2}/cgroup.controllers`) &&
  /\bmemory\b/.test(readFileSync(`${V2}/cgroup.subtree_control`, "latin1"));
const inGroup = process.getuid!() === 0 && (isV1 || isV2) ? test : test.skip;

const MIB = 1024 * 1024;
/** At this signal a worker takes all the memory that there is. */
const EATS = `if (process.argv[2] === "worker") process.on("SIGWINCH", () => {
  for (const kept = []; ; ) kept.push(Buffer.alloc(16 * ${MIB}, 1));
});\n`;

const held: ServerResponse[] = [];
const upstream = createServer((_request, response) => void held.push(response));
let group: string | undefined;

afterAll(async () => {
  killAll();
  upstream.closeAllConnections();
  upstream.close();
  if (group === undefined) return;
  const members = join(group, "cgroup.procs");
  await eventually(() => readFileSync(members, "latin1") === "", "for the group to be empty");
  rmdirSync(group);
});

inGroup("it is replaced, slower each time, the log has cause and fix, and the others serve on", async () => {
  upstream.listen(0, "127.0.0.1");
  await eventually(() => upstream.listening);
  const port = await freePort();
  group = mkdtempSync(join(isV1 ? V1 : V2, "portico-kills-"));
  writeFileSync(join(group, isV1 ? "memory.limit_in_bytes" : "memory.max"), String(600 * MIB));
  const eats = join(openFolder(), "eats.js");
  writeFileSync(eats, EATS);
  const portico = await Portico.start(
    oneServer({
      workers: 2,
      listeners: [loopback("http", port)],
      upstreams: [{ name: "app", url: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}` }],
      routes: [everywhere({ type: "proxy", upstream: "app" })],
    }),
    { before: `echo $$ > ${group}/cgroup.procs`, env: { NODE_OPTIONS: `--require ${eats}` } },
  );
  const descriptors = (): number => readdirSync(`/proc/${portico.pid}/fd`).length;
  const before = descriptors();
  /** What becomes of a request. */
  const ask = (): Promise<string> =>
    new Promise((resolve) => {
      const asked = request({ port, host: "127.0.0.1", agent: false }, async (response) => {
        let text = "";
        for await (const chunk of response) text += String(chunk);
        resolve(text);
      });
      asked.on("error", () => resolve("cut")).end();
    });
  const [survivor] = portico.workers();
  const other = (): number => portico.workers().find((pid) => pid !== survivor)!;
  for (const delay of [100, 200, 400]) {
    const victim = other();
    const asked = Array.from({ length: 12 }, ask);
    await eventually(() => held.length === 12, "for the upstream to be asked", {
      seen: () => `${held.length} ${portico.errors}`,
    });
    await eventually(
      () => {
        // One that has just begun does not take the signal yet.
        if (alive(victim)) process.kill(victim, "SIGWINCH");
        return !alive(victim);
      },
      "for the kernel to kill it",
      { everyMs: 100 },
    );
    await portico.says(
      new RegExp(
        `worker ${victim} was killed by the kernel, because memory ran out: allow the proxy more memory .*; a replacement starts in ${delay} ms`,
      ),
    );
    for (const response of held.splice(0)) response.end("yes");
    // Which of them the victim had is the kernel's choice.
    const got = await Promise.all(asked);
    expect(got.filter((one) => one !== "cut" && one !== "yes")).toEqual([]);
    expect(got).toContain("yes");
    await eventually(() => portico.workers().length === 2, "for its successor");
    expect(portico.workers()).toContain(survivor);
  }
  // By hand, it was not the kernel.
  process.kill(other(), "SIGKILL");
  await portico.says(/was killed by SIGKILL; a replacement starts in 800 ms/);
  await eventually(() => portico.workers().length === 2, "for its successor");
  await eventually(() => descriptors() <= before, "for the descriptors of workers to be closed");
  expect(await portico.stop()).toBe(0);
});
