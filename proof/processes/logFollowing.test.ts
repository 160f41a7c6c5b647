import { type ChildProcess, spawn } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { run } from "../../src/cli/program.js";
import { exchange } from "../../testkit/peers.js";
import { fixed, loopback, oneServer } from "../../testkit/oneServer.js";
import { openFolder, Portico } from "../../testkit/portico.js";
import { freePort } from "../../testkit/ports.js";
import { sharedBundle } from "../../testkit/sharedBundle.js";
import { eventually } from "../../testkit/waiting.js";

/** `portico log` and `portico why` beside a proxy whose workers write, while logs are rotated as logrotate does it. */

const sleep = promisify(setTimeout);
let portico: Portico | undefined;
afterEach(() => portico?.stop());

test.each(["json", "combined"] as const)(
  "no request of two workers is lost or shown twice over renames: %s",
  async (format) => {
    const [folder, port] = [openFolder(), await freePort()];
    const log = join(folder, "access.log");
    portico = await Portico.start(
      oneServer({
        workers: 2,
        requestId: { response: true },
        logs: { access: { path: log, format }, error: { path: join(folder, "error.log") } },
        listeners: [loopback("http", port)],
        routes: [fixed("here")],
      }),
    );
    let out = "";
    const output = { out: (text: string) => (out += text), err: (text: string) => (out += text) };
    const following = run(["log", "--config", portico.configFile, "--lines", "0"], output);
    await sleep(500);
    const shown = (): string[] => [...out.matchAll(/\/n(\d+)\./g)].map(([, n]) => n!);
    const ids: string[] = [];
    for (let i = 0; i < 60; i++) {
      const { headers } = await exchange(
        port,
        `GET /n${i}. HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
      );
      ids.push(headers["x-request-id"]!);
      if (i % 20 === 10) {
        // A file that is there for less than the time between two looks is not seen: no rotation is that fast.
        await eventually(() => shown().includes(String(i)), "for the file to be followed", {
          seen: () => out,
        });
        fs.renameSync(log, `${log}.${i}`);
        await sleep(50);
        portico.signal("SIGUSR1");
      }
      await sleep(10);
    }
    await eventually(() => shown().length >= 60, "for all lines", { seen: () => out });
    await sleep(600);
    process.emit("SIGTERM");
    expect(await following).toBe(0);
    expect(shown().sort((a, b) => Number(a) - Number(b))).toEqual(ids.map((_, i) => String(i)));
    const why = await told(portico.configFile, ids[5]!);
    if (format === "json") expect(why).toMatch(/GET \S+\/n5\.[^]*route all/);
    else expect(why).toMatch(/fix: +Set `logs\.access` to/);
  },
);

const LINE = '192.0.2.7 - - [21/Nov/2026:10:01:22 +0000] "GET / HTTP/1.1" 200 5 "-" "-"\n';
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

test.each<[what: string, end: (child: ChildProcess) => unknown]>([
  ...SIGNALS.map(
    (signal) => [signal, (child: ChildProcess) => child.kill(signal)] satisfies [string, unknown],
  ),
  ["a reader that goes away", (child) => child.stdout!.destroy()],
])("%s ends `portico log`, with 0", async (_what, end) => {
  const folder = openFolder();
  const [log, config] = [join(folder, "access.log"), join(folder, "portico.json")];
  const routes = [fixed("here")];
  const logs = { access: { path: log } };
  fs.writeFileSync(config, JSON.stringify(oneServer({ logs, listeners: [loopback("http", 80)], routes })));
  fs.writeFileSync(log, LINE);
  const child = spawn(process.execPath, [await sharedBundle(), "log", "--config", config], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    let lines = 0;
    child.stdout.on("data", (text: Buffer) => (lines += text.toString().split("\n").length - 1));
    await eventually(() => lines === 1, "for the line that is there");
    fs.appendFileSync(log, LINE);
    await eventually(() => lines === 2, "for it to follow");
    end(child);
    fs.appendFileSync(log, LINE);
    await eventually(() => child.exitCode !== null || child.signalCode !== null, "for its end", {
      ms: 20_000,
    });
    expect(child.exitCode).toBe(0);
  } finally {
    child.kill("SIGKILL");
  }
});

async function told(config: string, id: string): Promise<string> {
  let out = "";
  await run(["why", id, "--config", config], { out: (text) => (out += text), err: (text) => (out += text) });
  return out;
}
