import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import {
  allowanceText,
  heapOf,
  memoryWarning,
  withinMemory,
  workerCount,
} from "../../src/runtime/supervisor/report/allowance.js";
import { cgroupLimits, memoryKills } from "../../src/runtime/supervisor/report/cgroup.js";
import { limits } from "../../src/model/schema/limits.js";
import { parseConfig } from "../../src/model/index.js";
import { eventually } from "../../testkit/waiting.js";
import { Portico } from "../../testkit/portico.js";
import { freePort } from "../../testkit/ports.js";

/** Limits of control groups: as the kernel shows them in files, and what follows for the workers. */

const MIB = 1024 * 1024;
let folder: string;

beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "portico-cgroup-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function write(files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), `${text}\n`);
  }
}

const mount = (point: string, type: string, options: string, root = "/"): string =>
  `30 20 0:26 ${root} ${join(folder, point)} rw,nosuid shared:9 - ${type} ${type} ${options}`;

describe("version 2", () => {
  const V2 = { mountinfo: "", cgroup: "0::/kubepods/pod1/one" };
  const at = "sys/kubepods/pod1/one";

  beforeEach(() => write({ ...V2, mountinfo: mount("sys", "cgroup2", "rw,nsdelegate") }));

  test("the group's own limits", () => {
    write({ [`${at}/cpu.max`]: "150000 100000", [`${at}/memory.max`]: String(256 * MIB) });
    expect(cgroupLimits(folder)).toEqual({ cpus: 1.5, memoryBytes: 256 * MIB });
  });

  test("those of a group above, if they are lower", () => {
    write({ [`${at}/memory.max`]: "max", [`${at}/cpu.max`]: "400000 100000" });
    write({ "sys/kubepods/memory.max": String(512 * MIB), "sys/kubepods/pod1/cpu.max": "50000 100000" });
    expect(cgroupLimits(folder)).toEqual({ cpus: 0.5, memoryBytes: 512 * MIB });
  });

  test("none", () => {
    write({ [`${at}/memory.max`]: "max", [`${at}/cpu.max`]: "max 100000" });
    expect(cgroupLimits(folder)).toEqual({ cpus: undefined, memoryBytes: undefined });
    // With nothing at all no worker could run.
    write({ [`${at}/memory.max`]: "0", [`${at}/cpu.max`]: "0 100000" });
    expect(cgroupLimits(folder)).toEqual({ cpus: undefined, memoryBytes: undefined });
  });

  test("more than the machine has is none", () => {
    write({ [`${at}/memory.max`]: String(2 ** 50) });
    expect(cgroupLimits(folder).memoryBytes).toBeUndefined();
  });

  test("in a namespace of its own, where the group is the root", () => {
    write({ cgroup: "0::/", "sys/memory.max": String(300 * MIB), "sys/cpu.max": "200000 100000" });
    expect(cgroupLimits(folder)).toEqual({ cpus: 2, memoryBytes: 300 * MIB });
  });
});

test("what is above the mounted hierarchy limits nothing, and the root ends it", () => {
  write({ cgroup: "0::/one", "memory.max": String(300 * MIB), "sys/memory.max": "" });
  write({ mountinfo: mount("sys", "cgroup2", "rw") });
  expect(cgroupLimits(folder)).toEqual({ cpus: undefined, memoryBytes: undefined });
  write({ mountinfo: "30 20 0:26 / / rw - cgroup2 cgroup2 rw" });
  expect(cgroupLimits(folder)).toEqual({ cpus: undefined, memoryBytes: undefined });
});

describe("version 1", () => {
  const mountinfo = (): string =>
    [
      mount("sys/cpu,cpuacct", "cgroup", "rw,cpu,cpuacct"),
      mount("sys/memory", "cgroup", "rw,memory"),
      mount("sys/unified", "cgroup2", "rw"),
    ].join("\n");
  const cgroup = "5:memory:/docker/abc\n3:cpuacct,cpu:/docker/abc\n0::/docker/abc";

  test("the group's own limits, beside a version 2 without controllers", () => {
    write({ mountinfo: mountinfo(), cgroup });
    write({
      "sys/memory/docker/abc/memory.limit_in_bytes": String(128 * MIB),
      "sys/memory/memory.limit_in_bytes": "9223372036854771712",
      "sys/cpu,cpuacct/docker/abc/cpu.cfs_quota_us": "250000",
      "sys/cpu,cpuacct/docker/abc/cpu.cfs_period_us": "100000",
      "sys/cpu,cpuacct/cpu.cfs_quota_us": "-1",
      "sys/cpu,cpuacct/cpu.cfs_period_us": "100000",
    });
    expect(cgroupLimits(folder)).toEqual({ cpus: 2.5, memoryBytes: 128 * MIB });
  });

  test("in a container that sees its group from outside", () => {
    write({ mountinfo: mount("sys/memory", "cgroup", "rw,memory", "/docker/abc"), cgroup });
    write({ "sys/memory/memory.limit_in_bytes": String(64 * MIB) });
    expect(cgroupLimits(folder)).toEqual({ cpus: undefined, memoryBytes: 64 * MIB });
  });

  test.each([
    ["in a group below the one that is mounted", "/docker", "sys/memory/abc"],
    ["where another group is mounted", "/other", "sys/memory"],
  ])("%s", (_, root, at) => {
    write({ mountinfo: mount("sys/memory", "cgroup", "rw,memory", root), cgroup });
    write({ [`${at}/memory.limit_in_bytes`]: String(64 * MIB) });
    expect(cgroupLimits(folder)).toEqual({ cpus: undefined, memoryBytes: 64 * MIB });
  });
});

test("processes that the kernel killed are counted in either version", () => {
  write({ cgroup: "0::/one", mountinfo: mount("sys", "cgroup2", "rw") });
  expect(memoryKills(folder)).toBe(0);
  write({ "sys/one/memory.events": "low 0\nhigh 0\nmax 9\noom 4\noom_kill 3\noom_group_kill 0" });
  expect(memoryKills(folder)).toBe(3);
  write({ cgroup: "5:memory:/two", mountinfo: mount("sys", "cgroup", "rw,memory") });
  write({ "sys/two/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2" });
  expect(memoryKills(folder)).toBe(2);
  expect(memoryKills(join(folder, "none"))).toBe(0);
});

test("without procfs there is no limit", () => {
  expect(cgroupLimits(join(folder, "none"))).toEqual({ cpus: undefined, memoryBytes: undefined });
});

describe("what follows", () => {
  const NONE = { cpus: undefined, memoryBytes: undefined };
  const ALL = limits.parse({});
  const auto = { workers: "auto", limits: ALL } as const;

  test("nothing without a limit", () => {
    expect(workerCount(auto, NONE)).toBe(availableParallelism());
    expect([heapOf(auto, NONE), allowanceText(auto, NONE)]).toEqual([undefined, undefined]);
  });

  test("a worker for each processor or part of one, at least one, and as many as the config says", () => {
    expect(workerCount(auto, { ...NONE, cpus: 0.2 })).toBe(1);
    expect(workerCount(auto, { ...NONE, cpus: 1 })).toBe(1);
    expect(workerCount(auto, { ...NONE, cpus: 1.2 })).toBe(Math.min(2, availableParallelism()));
    expect(workerCount({ workers: 7 }, { cpus: 1, memoryBytes: 64 * MIB })).toBe(7);
  });

  test("no more workers than memory has room for", () => {
    expect(workerCount(auto, { ...NONE, memoryBytes: 64 * MIB })).toBe(1);
    expect(workerCount(auto, { ...NONE, memoryBytes: 170 * MIB })).toBe(1);
  });

  test.each([128, 256, 512, 1024, 4096, 16_384])("the heaps fit %i MiB", (mib) => {
    for (const workers of [1, 2, 4]) {
      if (mib < 96 + workers * 64) continue;
      const { oldMiB, semiMiB = 8 } = heapOf({ workers }, { ...NONE, memoryBytes: mib * MIB })!;
      expect(workers * (oldMiB + 3 * semiMiB)).toBeLessThan(mib - 64);
    }
  });

  test("the log says what was found, and what is too little", () => {
    const group = { cpus: 1.5, memoryBytes: 256 * MIB };
    expect(allowanceText({ ...auto, workers: 2 }, group)).toBe(
      "the control group allows 1.5 CPUs and 256 MiB of memory: 2 workers, with heaps of up to 40 MiB and " +
        "up to 16384 connections of up to 128 streams",
    );
    expect(allowanceText({ ...auto, workers: 1 }, { ...NONE, cpus: 1 })).toBe(
      "the control group allows 1 CPU: 1 worker",
    );
    expect(allowanceText({ ...auto, workers: 4 }, group)).toMatch(
      /; that is little: each worker needs 64 MiB/,
    );
  });
});

describe("limits of clients", () => {
  const [listener] = [{ name: "http", address: "127.0.0.1", port: 80, protocol: "http" }] as const;
  const virtualServers = [
    { name: "v", serverNames: ["_"], default: true, listeners: ["http"], routes: [] },
  ] as const;
  const loaded = (own: object) => {
    const parsed = parseConfig({
      version: 1,
      workers: 1,
      limits: own,
      listeners: [listener],
      virtualServers,
    });
    if (!parsed.ok) throw new Error("refused");
    return { config: parsed.value, givenLimits: Object.keys(own) };
  };
  const group = (mib: number) => ({ cpus: undefined, memoryBytes: mib * MIB });
  const none = { cpus: undefined, memoryBytes: undefined };

  test("follow from memory, and not without a limit of it", () => {
    const { limits: found } = withinMemory(loaded({}), group(256));
    expect(found).toEqual({
      ...limits.parse({}),
      connectionsMax: 64,
      connectionsPerClientMax: 32,
      concurrentStreamsMax: 16,
    });
    const one = loaded({});
    expect(withinMemory(one, none)).toBe(one.config);
  });

  test.each<[string, object, number, RegExp | undefined]>([
    ["of the config that fit", { connectionsMax: 64, concurrentStreamsMax: 16 }, 256, undefined],
    [
      "one connection too many",
      { connectionsMax: 65, concurrentStreamsMax: 16 },
      256,
      /\(65\).* room for 64 /,
    ],
    ["too many for the fewest streams", { connectionsMax: 9_000 }, 512, /\(9000\).*512 MiB.* room for 142 /],
    ["that follow from it, however little there is", {}, 20, undefined],
    ["that memory has nothing to do with", { headerCountMax: 8 }, 20, undefined],
  ])("%s", (_, own, mib, warning) => {
    const said = memoryWarning(loaded(own), group(mib));
    if (warning === undefined) expect(said).toBeUndefined();
    else expect(said).toMatch(warning);
    expect(memoryWarning(loaded(own), none)).toBeUndefined();
  });
});

const REAL = "/sys/fs/cgroup/memory";
const inRealGroup = process.getuid!() === 0 && existsSync(`${REAL}/memory.limit_in_bytes`) ? test : test.skip;

/** What a unit's `ProcSubset=pid` and `ProtectControlGroups=` leave of the kernel's files. */
const SANDBOX =
  `exec unshare --mount sh -c 'mount -o remount,bind,ro ${REAL}; mount -t proc -o subset=pid proc /proc; ` +
  `exec "$0" "$@"' "$0" "$@"`;

inRealGroup.each([
  ["in a real group", ":"],
  ["in a real group, in the sandbox of a unit", SANDBOX],
])("%s the workers' heaps are limited, and the log says so", async (_, sandbox) => {
  const group = mkdtempSync(join(REAL, "portico-test-"));
  try {
    writeFileSync(join(group, "memory.limit_in_bytes"), String(256 * MIB));
    const portico = await Portico.start(
      {
        version: 1,
        workers: 2,
        listeners: [{ name: "http", address: "127.0.0.1", port: await freePort(), protocol: "http" }],
        virtualServers: [{ name: "v", serverNames: ["_"], default: true, listeners: ["http"], routes: [] }],
      },
      { before: `echo $$ > ${group}/cgroup.procs; ${sandbox}` },
    );
    expect(portico.errors).toContain(
      "256 MiB of memory: 2 workers, with heaps of up to 40 MiB and up to 29 connections of up to 16 streams\n",
    );
    expect(portico.workers()).toHaveLength(2);
    expect(await portico.stop()).toBe(0);
  } finally {
    await eventually(
      () => readFileSync(join(group, "cgroup.procs"), "utf8") === "",
      "for the group to be empty",
    );
    rmdirSync(group);
  }
});
