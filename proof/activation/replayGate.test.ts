import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, symlinkSync, unlinkSync } from "node:fs";
import path from "node:path";
import {
  type DeploymentInput,
  type Problem,
  ProblemError,
  type ProxyConfigInput,
} from "../../src/model/index.js";
import { CONFIG, Site, type SiteFiles, siteFiles } from "./site.js";

/** An access log as a gate in front of an activation. */

const LOG = "/var/log/portico/access.log";
let site: Site;
let one: SiteFiles;

beforeAll(async () => {
  one = await siteFiles("1");
});
beforeEach(async () => {
  site = new Site();
  site.deliver(one);
  await site.activate();
  site.lines.length = 0;
});
afterEach(() => site.remove());

/** The same site with another config; by default its routes are gone. */
function changed(
  change: (config: ProxyConfigInput) => ProxyConfigInput = (config) => ({
    ...config,
    virtualServers: config.virtualServers.map((server) => ({
      ...server,
      routes: [{ name: "gone", path: "/", match: "prefix", action: { type: "respond", status: 410 } }],
    })),
  }),
): SiteFiles {
  const config = JSON.parse(one[CONFIG]!.content) as ProxyConfigInput;
  return { ...one, [CONFIG]: { role: "config", content: JSON.stringify(change(config)) } };
}

const line = (target: string): string =>
  `192.0.2.7 - - [26/Nov/2026:10:00:00 +0000] "GET ${target} HTTP/1.1" 200 2 "-" "curl/8"\n`;

async function problemsOf(gate: DeploymentInput["replay"], files = changed()): Promise<readonly Problem[]> {
  site.deliver(files, { replay: gate });
  const error = await site.activate().then(
    () => undefined,
    (e: unknown) => e,
  );
  if (error === undefined) return [];
  expect(error).toBeInstanceOf(ProblemError);
  return (error as ProblemError).problems;
}

const gate = { accessLog: LOG };

test("requests that would change are shown, and nothing is changed", async () => {
  site.write(LOG, line("/one?token=s3cr3t") + line("/two") + line("/three"));
  const before = site.snapshot();
  const [refused, ...others] = await problemsOf(gate);
  expect(others).toEqual([]);
  expect(refused).toMatchObject({
    code: "activation.replay-changes",
    path: LOG,
    received: '"3 of 3 requests"',
    allowed: "up to 0 requests",
  });
  expect(site.snapshot()).toEqual(before);
  const shown = site.lines.join("\n");
  expect(shown).toMatch(/-> .*\/gone: fixed response, 410\n {4}GET https:\/\/-\/one\?\.\.\. /);
  expect(shown).toContain("the new config against the config in force: 3 requests, 3 change (100.00 %)");
  expect(shown).not.toContain("s3cr3t");
  expect(await problemsOf({ ...gate, changesMax: 2 })).toHaveLength(1);
  expect(await problemsOf({ ...gate, changesMax: 3 })).toEqual([]);
  expect(site.read(CONFIG)).toBe(changed()[CONFIG]!.content);
});

test("a dry run says the same", async () => {
  site.write(LOG, line("/one"));
  site.deliver(changed(), { replay: gate });
  await expect(site.activate({ dryRun: true })).rejects.toThrow("[activation.replay-changes]");
});

test("a config that treats them alike is activated, and one of the same text reads no log", async () => {
  site.write(LOG, line("/one"));
  const same = changed((config) => ({ ...config, timeouts: { keepAliveMs: 7_000 } }));
  expect(await problemsOf(gate, same)).toEqual([]);
  expect(site.read(CONFIG)).toBe(same[CONFIG]!.content);
  execFileSync("mkfifo", [site.at(`${LOG}.fifo`)]);
  expect(await problemsOf({ accessLog: `${LOG}.fifo` }, same)).toEqual([]);
});

test("the main access log of the config in force is the default; only its end is read", async () => {
  const logged = changed((config) => ({ ...config, logs: { access: { path: LOG } } }));
  expect(await problemsOf(undefined, logged)).toEqual([]);
  site.write(LOG, line("/old").repeat(1_000) + line("/new"));
  // Of the first line that it reads, the begin is not there: what is left looks like the line of another client.
  const logBytesMax = 13 * line("/old").length - "192.".length;
  const [refused] = await problemsOf({ logBytesMax });
  expect(refused).toMatchObject({ path: LOG, received: '"12 of 12 requests"' });
});

describe("is no reason to refuse:", () => {
  const elsewhere = (): void => {
    site.write("/root/secret", line("/one"));
    symlinkSync(site.at("/root/secret"), site.at(LOG));
  };
  test.each<[string, () => void, string]>([
    ["a log that is missing", () => undefined, "cannot be read (2: No such file or directory)"],
    ["one that is empty", () => site.write(LOG, ""), "it contains no request"],
    ["one without a request", () => site.write(LOG, "nonsense\n"), "it contains no request"],
    ["a directory", () => mkdirSync(site.at(LOG)), "it is no regular file"],
    ["a pipe that nobody writes to", () => execFileSync("mkfifo", [site.at(LOG)]), "it is no regular file"],
    ["a link to a file of somebody else", elsewhere, "cannot be read (40: "],
  ])("%s", async (_, prepare, why) => {
    mkdirSync(path.dirname(site.at(LOG)), { recursive: true });
    rmSync(site.at(LOG), { force: true });
    prepare();
    site.deliver(changed(), { replay: gate });
    const { plan } = await site.activate();
    expect(plan.warnings).toContainEqual(
      expect.objectContaining({
        code: "activation.not-replayed",
        path: LOG,
        message: expect.stringContaining(`was not replayed: ${why.startsWith("cannot") ? why : ""}`),
      }),
    );
    expect(JSON.stringify(plan.warnings)).toContain(why);
    expect(site.read(CONFIG)).toBe(changed()[CONFIG]!.content);
  });

  test("a first activation, and a config that logs nowhere", async () => {
    const [first, second] = [new Site(), new Site()];
    try {
      first.deliver(one, { replay: gate });
      expect((await first.activate()).plan.warnings.map(({ code }) => code)).not.toContain(
        "activation.not-replayed",
      );
      second.deliver(changed((config) => ({ ...config, logs: {} })));
      await second.activate();
      second.deliver(changed(), { replay: {} });
      expect((await second.activate()).plan.warnings).toContainEqual(
        expect.objectContaining({ code: "activation.not-replayed", path: "logs.access" }),
      );
    } finally {
      first.remove();
      second.remove();
    }
  });

  test("a combined log of several names, unless it is said whose it is", async () => {
    const two = (config: ProxyConfigInput): ProxyConfigInput => {
      const listeners = config.listeners.map(({ name }) => name);
      const server = { ...config.virtualServers.find(({ default: is }) => is)!, listeners };
      const names = [["files.example.org"], ["other.example.org"]];
      const [first, second] = names.map((serverNames, i) => ({ ...server, serverNames, default: i === 0 }));
      return { ...config, virtualServers: [first!, { ...second!, name: "other" }] };
    };
    expect(await problemsOf(undefined, changed(two))).toEqual([]);
    site.write(LOG, line("/one"));
    site.deliver(changed(), { replay: gate });
    const { plan } = await site.activate({ dryRun: true });
    expect(plan.warnings).toContainEqual(
      expect.objectContaining({ code: "activation.not-replayed", message: expect.stringContaining("hosts") }),
    );
    expect(await problemsOf({ ...gate, host: "other.example.org" })).toMatchObject([
      { code: "activation.replay-changes" },
    ]);
    unlinkSync(site.at(LOG));
  });
});
