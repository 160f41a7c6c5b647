import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { nextcloud } from "../../src/applications/nextcloud.js";
import { randomBody } from "../../testkit/random.js";
import { eventually } from "../../testkit/waiting.js";
import { Service } from "./service.js";
import { SyncServer } from "./syncServer.js";

/** Nextcloud's own sync client, which uploads while `portico quiesce` refuses writes, and again afterwards. */

const FILES = 20;

let server: SyncServer;
let service: Service;

beforeEach(async () => {
  server = await new SyncServer().listen();
});

afterEach(async () => {
  await service.end();
  await server.close();
});

const file = (name: string): string => join(service.folder, name);

/** One run of the client, without its own repetitions. */
async function synchronise(): Promise<void> {
  const client = spawn(
    "nextcloudcmd",
    [
      ...[
        "--silent",
        "--non-interactive",
        "--max-sync-retries",
        "1",
        "--user",
        "anna",
        "--password",
        "secret",
      ],
      ...[file("files"), `http://127.0.0.1:${service.plainPort}`],
    ],
    { env: { ...process.env, HOME: file("home"), QT_QPA_PLATFORM: "offscreen" }, stdio: "ignore" },
  );
  await once(client, "exit");
}

/** How many uploads were refused; the log is written a moment later. */
const refused = (): number =>
  (readFileSync(file("access.log"), "utf8").match(/"PUT \S+ HTTP\/1\.1" 503 /g) ?? []).length;

/** Synchronises during a quiesce. */
async function synchroniseInQuiesce(): Promise<void> {
  const command = service.quiesce(
    `touch ${file("begun")}; until [ -e ${file("go-on")} ]; do sleep 0.1; done`,
  );
  await eventually(() => existsSync(file("begun")), "for the quiesce to begin");
  await synchronise();
  writeFileSync(file("go-on"), "");
  const [code] = (await once(command, "exit")) as [number];
  expect(code).toBe(0);
}

async function start(
  pauseResponse: ReturnType<typeof nextcloud>["pauseResponse"],
): Promise<Map<string, Buffer>> {
  service = await Service.start(server.url, { pauseResponse });
  for (const name of ["files", "home"]) mkdirSync(file(name));
  const files = Array.from({ length: FILES }, (_, i) => [`${i}.bin`, randomBody(5_000)] as const);
  for (const [name, bytes] of files) writeFileSync(join(file("files"), name), bytes);
  return new Map(files);
}

test("after the response of the entry the client ends its run, and the next run uploads all files", async () => {
  const files = await start(nextcloud({}).pauseResponse);
  await synchroniseInQuiesce();
  expect(server.files.size).toBe(0);
  await eventually(() => refused() > 0, "for the log");
  // Those that it sends at once.
  expect(refused()).toBeLessThanOrEqual(6);
  await synchronise();
  const arrived = new Map([...server.files].map(([name, { body }]) => [name, body]));
  expect(arrived).toEqual(files);
}, 60_000);

test("after a line of text the client counts a failure of each file, and leaves files out of the next run", async () => {
  await start(undefined);
  await synchroniseInQuiesce();
  await eventually(() => refused() === FILES, "for the log");
  await synchronise();
  expect(server.files.size).toBeLessThan(FILES);
}, 60_000);
