import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { renderFormerLogRotation, renderLogRotation } from "../../src/render/index.js";
import { testWith } from "../../testkit/testWith.js";
import { CONFIG, Site, type SiteFiles, siteFiles } from "./site.js";

/** Logs that deployments of a host have left: what rotates them, and what a purge removes. */

const ROTATION = "/etc/logrotate.d/portico";
const FORMER = "/etc/logrotate.d/portico-former-logs";
const log = (name: string): string => `/var/log/portico/${name}.log`;

let site: Site;
let one: SiteFiles;
beforeAll(async () => {
  one = await siteFiles("1");
});
beforeEach(() => {
  site = new Site();
});
afterEach(() => site.remove());

/** A deployment that logs to a file, and keeps logs for some days. */
function logging(path: string, keptDays = 14): SiteFiles {
  const { content, ...config } = one[CONFIG]!;
  const rotation = renderLogRotation({ logs: [path], keptDays, service: "portico.service" });
  return {
    ...one,
    [CONFIG]: { ...config, content: content.replaceAll(log("error"), path) },
    [ROTATION]: { role: "other", content: rotation },
  };
}

async function activate(files: SiteFiles): Promise<void> {
  const [, path] = /^"(.*)"$/m.exec(files[ROTATION]?.content ?? "") ?? [];
  if (path !== undefined) site.write(path, "x");
  site.deliver(files);
  await site.activate();
}

/** An activation that fails while it writes files, as a disk that is full would have it. */
async function fail(files: SiteFiles): Promise<void> {
  const folder = site.at("/usr/share/portico/more");
  mkdirSync(folder, { recursive: true });
  execFileSync("mount", ["-t", "tmpfs", "-o", "ro,size=64k", "tmpfs", folder]);
  try {
    const page = { role: "page", content: "x" } as const;
    await expect(activate({ ...files, "/usr/share/portico/more/page.html": page })).rejects.toThrow("page");
  } finally {
    execFileSync("umount", [folder]);
  }
}

/** The files that logrotate is to remove, and after how many days. */
function former(): [days: number, ...files: string[]] | undefined {
  if (!existsSync(site.at(FORMER))) return undefined;
  const text = site.read(FORMER);
  return [
    Number(/^\tminage (\d+)$/m.exec(text)?.[1]),
    ...[...text.matchAll(/^"(.*)"$/gm)].map(([, file]) => file!),
  ];
}

test("of a removed route are removed by logrotate with their rotated files, until a route has the log again", async () => {
  for (const end of [".1", ".2.gz", "-2.log"]) site.write(`${log("former")}${end}`, "x");
  await activate(logging(log("former")));
  expect(former()).toBeUndefined();
  await activate(logging(log("error"), 30));
  expect(former()).toEqual([30, log("former"), `${log("former")}.1`, `${log("former")}.2.gz`]);
  await site.activate();
  expect(former()).toHaveLength(4);
  await activate(logging(log("former")));
  expect(former()).toEqual([14, log("error")]);
});

test("that are gone are forgotten", async () => {
  await activate(logging(log("former")));
  await activate(logging(log("error")));
  expect(former()).toEqual([14, log("former")]);
  execFileSync("rm", [site.at(log("former"))]);
  await activate(logging(log("error"), 15));
  expect(former()).toBeUndefined();
  expect(site.read("/var/lib/portico/deployment/logs.json")).not.toContain("former");
});

test("of an activation that was rolled back, and of a first one, are removed by logrotate and by a purge", async () => {
  await fail(logging(log("first")));
  expect(former()).toEqual([14, log("first")]);
  await activate(logging(log("error")));
  await fail(logging(log("second")));
  expect(former()).toEqual([14, log("first"), log("second")]);
  await site.deactivate(true);
  expect(Object.keys(site.snapshot()).filter((name) => /log/.test(name) && name.includes("portico"))).toEqual(
    [],
  );
});

test("of a first activation that failed go with a purge, and stay otherwise", async () => {
  for (const purge of [false, true]) {
    await fail(logging(log("first")));
    await site.deactivate(purge);
    expect([existsSync(site.at(log("first"))), existsSync(site.at(FORMER))]).toEqual([!purge, false]);
  }
});

test("are left to whoever rotates the logs of a deployment without a rotation", async () => {
  const without = ({ [ROTATION]: _, ...files }: SiteFiles): SiteFiles => files;
  await activate(without(logging(log("former"))));
  await activate(without(logging(log("error"))));
  expect(former()).toBeUndefined();
});

test("below a directory of the service's user are left to a purge: he could lead logrotate elsewhere", async () => {
  mkdirSync(site.at("/var/log/portico"), { recursive: true });
  const nested = "/var/log/portico/site/access.log";
  await activate(logging(nested));
  chownSync(site.at("/var/log/portico"), 42_424, 42_424);
  await activate(logging(log("error")));
  expect(former()).toBeUndefined();
  expect(await site.deactivate(true)).toEqual([]);
  expect(existsSync(site.at(nested))).toBe(false);
});

test("a list that is damaged is named with what to do", async () => {
  await activate(one);
  site.write("/var/lib/portico/deployment/logs.json", "{");
  site.deliver(logging(log("former")));
  await expect(site.activate()).rejects.toMatchObject({
    problems: [
      {
        code: "activation.damaged-store",
        path: site.at("/var/lib/portico/deployment/logs.json"),
        fix: "Remove the file and activate again.",
      },
    ],
  });
});

testWith("logrotate")("logrotate removes each file when nothing was written to it for the days", () => {
  const ages = { "a.log": 15, "a.log.1": 20, "a.log.2.gz": 13, "b.log": 13, "b.log.1": 16, "b.log.7": 20 };
  const [folder, config, state] = ["/var/log/portico", "/config", "/state"].map((path) => site.at(path)) as [
    string,
    string,
    string,
  ];
  const daysAgo = (days: number): Date => new Date(Date.now() - days * 86_400_000);
  for (const [name, days] of Object.entries(ages)) {
    site.write(`/var/log/portico/${name}`, "x");
    utimesSync(join(folder, name), daysAgo(days), daysAgo(days));
  }
  const listed = Object.keys(ages).filter((name) => name !== "b.log.7");
  const text = renderFormerLogRotation(
    [...listed, "gone.log"].map((name) => join(folder, name)),
    14,
  );
  // Distributions have such options for all files.
  site.write("/config", `compress\ndateext\n${text}`);
  chmodSync(config, 0o644);
  const rotate = (): string => execFileSync("logrotate", ["--state", state, config]).toString();
  rotate();
  expect(readdirSync(folder)).toHaveLength(6);
  // It waits for a day after it sees a file for the first time.
  const [then] = daysAgo(2).toISOString().split("T");
  site.write("/state", site.read("/state").replaceAll(/ \d+-\d+-\d+-[\d:]+$/gm, ` ${then}-0:0:0`));
  rotate();
  expect(readdirSync(folder).sort()).toEqual(["a.log.2.gz", "b.log", "b.log.7"]);
});
