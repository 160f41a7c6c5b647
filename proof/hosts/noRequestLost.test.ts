import { setTimeout as sleep } from "node:timers/promises";
import type { LoadReport } from "../../testkit/load/steadyLoad.js";
import { issue } from "../../testkit/certificates.js";
import { PorticoHost } from "./porticoHost.js";
import { eventually } from "../../testkit/waiting.js";

/** What clients notice of changes and faults on a real host: small requests without pause, and long transfers. */
let portico: PorticoHost;

const TRANSFER_MS = 5_000;

beforeAll(async () => {
  portico = await PorticoHost.boot({ name: "lossless" });
}, 600_000);

afterAll(async () => {
  await portico?.remove();
});

const KINDS = ["http/1.1", "http/1.1 tls", "http/2"].flatMap((kind) => [
  `${kind} download`,
  `${kind} upload`,
]);

const lostTransfers = ({ transfers }: LoadReport) => transfers.filter(({ failure }) => failure !== undefined);

/** Kinds of transfers that had begun before a moment and ended well after it. */
function survivors({ transfers }: LoadReport, moment: number): string[] {
  return transfers
    .filter(({ from, to, failure }) => from < moment && moment < to && failure === undefined)
    .map(({ kind }) => kind)
    .sort();
}

function expectNothingLost(report: LoadReport, moments: readonly number[]): void {
  expect(report.failures).toEqual([]);
  expect(lostTransfers(report)).toEqual([]);
  for (const moment of moments) expect(survivors(report, moment)).toEqual([...KINDS].sort());
  for (const count of Object.values(report.responses)) expect(count).toBeGreaterThan(5);
}

const refusedConnections = ({ failures, transfers }: LoadReport) =>
  [...failures, ...transfers].filter(({ failure }) => failure?.includes("ECONNREFUSED"));

const upgrade = () => portico.host.must("/usr/lib/portico/node /usr/lib/portico/portico.mjs upgrade");

test("reloads, with a changed config and with a renewed certificate, lose nothing", async () => {
  const load = await portico.load(TRANSFER_MS);
  const moments = [Date.now()];
  await portico.writeConfig(portico.config({ workers: 1 }));
  await portico.host.must("systemctl reload portico.service");
  moments.push(Date.now());
  await portico.useCertificate(await issue({ name: "renewed" }));
  await portico.host.must("systemctl reload portico.service");
  expect(await portico.certificate()).toBe("renewed");
  expectNothingLost(await load.stop(), moments);
  await portico.writeConfig();
  await portico.host.must("systemctl reload portico.service");
});

test("upgrades of the runtime lose nothing, and systemd follows them", async () => {
  const first = await portico.show("MainPID");
  // Those that began before the first upgrade still run after the second, also on a busy machine.
  const load = await portico.load(6 * TRANSFER_MS);
  const moments: number[] = [];
  for (const version of ["0.2.0", "0.3.0"]) {
    await portico.install(version);
    moments.push(Date.now());
    const said = await upgrade();
    expect(said).toBe(`a new master, process ${await portico.show("MainPID")}, has taken over\n`);
    expect(await portico.release()).toBe(version);
    expect(await portico.show("ActiveState")).toBe("active");
  }
  expect((await portico.processes("master")).length).toBe(3);
  expect(await portico.show("StatusText")).toMatch(/, generation \d+, 1 older finishing$/);
  expectNothingLost(await load.stop(), moments);
  await eventually(
    async () => (await portico.processes("master")).length === 1,
    "until the old masters are gone",
    { everyMs: 100 },
  );
  const main = await portico.show("MainPID");
  expect(main).not.toBe(first);
  expect(await portico.processes("master")).toEqual([Number(main)]);
  // The new master's parent is systemd by now, which reloads, stops and starts it as ever.
  await portico.host.must("systemctl reload portico.service");
  await portico.host.must("systemctl stop portico.socket portico.service");
  expect(await portico.show("Result")).toBe("success");
  expect(await portico.processes("master")).toEqual([]);
  await portico.host.must("systemctl start portico.service");
  expect(await portico.release()).toBe("0.3.0");
});

test("an upgrade that fails loses nothing, and changes nothing", async () => {
  const main = await portico.show("MainPID");
  const load = await portico.load(TRANSFER_MS);
  const moment = Date.now();
  await portico.install("0.4.0", () => "process.exit(7)");
  // The command comes with the good release, as a deployment keeps it.
  await expect(upgrade()).rejects.toThrow();
  await portico.install("0.4.0", (code) =>
    code.replace("\nimport", "\nif (process.argv[2] === 'worker') process.exit(8);\nimport"),
  );
  await expect(upgrade()).rejects.toThrow(/worker \d+ exited with code 8 before it was ready/);
  await portico.install("0.3.0");
  expect(await portico.show("MainPID")).toBe(main);
  expect(await portico.show("ActiveState")).toBe("active");
  expect(await portico.release()).toBe("0.3.0");
  expectNothingLost(await load.stop(), [moment]);
});

test("a restart of the unit refuses no connection, and lets transfers finish", async () => {
  const load = await portico.load(TRANSFER_MS);
  const moment = Date.now();
  await portico.host.must("systemctl restart portico.service");
  const report = await load.stop();
  expect(refusedConnections(report)).toEqual([]);
  expectNothingLost(report, [moment]);
});

test("a restart while an upgrade drains refuses no connection, and lets transfers finish", async () => {
  const load = await portico.load(TRANSFER_MS);
  const moment = Date.now();
  await upgrade();
  await portico.host.must("systemctl restart portico.service");
  const report = await load.stop();
  expect(await portico.show("Result")).toBe("success");
  expect((await portico.processes("master")).length).toBe(1);
  expectNothingLost(report, [moment]);
});

test("a killed worker loses at most the requests it was serving", async () => {
  const [victim] = await portico.processes("worker");
  const load = await portico.load(TRANSFER_MS);
  const served = Number(await portico.host.must(`ss -Htnp | grep -c 'pid=${victim},'`));
  const moment = Date.now();
  await portico.host.must(`kill -9 ${victim}`);
  await sleep(1_500);
  const report = await load.stop();
  expect(refusedConnections(report)).toEqual([]);
  const lost = [...report.failures.map(({ at }) => at), ...lostTransfers(report).map(({ from }) => from)];
  expect(lost.length).toBeLessThanOrEqual(served);
  for (const at of lost) expect(at).toBeLessThan(moment + 1_000);
  expect(await portico.show("NRestarts")).toBe("0");
});

describe("a master that is killed", () => {
  async function expectOnlyRunningLost(kill: () => Promise<number>): Promise<void> {
    const restarts = Number(await portico.show("NRestarts"));
    const load = await portico.load(TRANSFER_MS);
    const moment = await kill();
    await eventually(
      async () => Number(await portico.show("NRestarts")) === restarts + 1,
      "until it runs again",
      { everyMs: 100 },
    );
    await eventually(async () => (await portico.show("ActiveState")) === "active", "until it is active", {
      everyMs: 100,
    });
    const back = Date.now();
    const report = await load.stop();
    expect(refusedConnections(report)).toEqual([]);
    const lost = [...report.failures.map(({ at }) => at), ...lostTransfers(report).map(({ from }) => from)];
    // 10 small requests and 6 transfers run at a time.
    expect(lost.length).toBeLessThanOrEqual(16);
    for (const at of lost) expect(at).toBeLessThan(moment + 1_000);
    // RestartSec=2 and the start.
    expect(back - moment).toBeLessThan(15_000);
    expect(report.slowestMs).toBeLessThan(15_000);
  }

  async function killMaster(): Promise<number> {
    const main = await portico.show("MainPID");
    const moment = Date.now();
    await portico.host.must(`kill -9 ${main}`);
    return moment;
  }

  test("is restarted, and no connection is refused", () => expectOnlyRunningLost(killMaster), 60_000);

  test("just after it took over is restarted, and no connection is refused", async () => {
    await expectOnlyRunningLost(async () => {
      await upgrade();
      expect((await portico.processes("master")).length).toBe(2);
      return killMaster();
    });
  });
});
