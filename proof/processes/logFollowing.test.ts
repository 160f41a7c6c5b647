import fs from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { run } from "../../src/cli/program.js";
import { exchange } from "../kit/peers.js";
import { fixed, loopback, oneServer } from "../kit/oneServer.js";
import { openFolder, Portico } from "../kit/portico.js";
import { freePort } from "../kit/ports.js";
import { eventually } from "../kit/waiting.js";

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
    const ids: string[] = [];
    for (let i = 0; i < 60; i++) {
      const { headers } = await exchange(
        port,
        `GET /n${i}. HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`,
      );
      ids.push(headers["x-request-id"]!);
      if (i % 20 === 10) {
        fs.renameSync(log, `${log}.${i}`);
        await sleep(50);
        portico.signal("SIGUSR1");
      }
      await sleep(10);
    }
    const shown = (): string[] => [...out.matchAll(/\/n(\d+)\./g)].map(([, n]) => n!);
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

async function told(config: string, id: string): Promise<string> {
  let out = "";
  await run(["why", id, "--config", config], { out: (text) => (out += text), err: (text) => (out += text) });
  return out;
}
