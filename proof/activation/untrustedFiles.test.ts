import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathsOf, unitPathProblems } from "../../src/host/diagnosis/system/unitPaths.js";
import { problemsOf } from "../../src/host/activation/execution.js";
import { siteConfig } from "../../testkit/siteConfig.js";
import { CONFIG, Site, siteFiles } from "./site.js";

/** What an activation says of files that another user decides about, before it touches anything. */

const APP = 42_424;
let site: Site;
beforeEach(() => (site = new Site()));
afterEach(() => site.remove());

test.each<[string, (file: string) => void]>([
  ["a link to a file of root's", (file) => symlinkSync("/etc/shadow", file)],
  ["a FIFO", (file) => execFileSync("mkfifo", [file])],
  ["a file", (file) => writeFileSync(file, "value")],
])(
  "the value of a field in the application's directory, %s: refused; moved to root's, it is served",
  async (_, put) => {
    const files = await siteFiles("1");
    const deliver = (file: string): void => {
      const config = siteConfig({ mode: "tls" });
      for (const server of config.virtualServers)
        for (const { action } of server.routes)
          if (action.type === "proxy")
            Object.assign(action, { setHeadersFromCredential: { "X-Api-Key": file } });
      site.deliver({ ...files, [CONFIG]: { role: "config", content: JSON.stringify(config) } });
    };
    mkdirSync(site.at("/srv/sync/conf"), { recursive: true });
    put(site.at("/srv/sync/conf/apikey"));
    lchownSync(site.at("/srv/sync/conf"), APP, APP);
    deliver("/srv/sync/conf/apikey");
    const refused = await site.activate().then(
      () => [],
      (error: unknown) => problemsOf(error),
    );
    expect(refused.map(({ code }) => code)).toContain("files.untrusted-path");
    expect(existsSync(site.at(CONFIG))).toBe(false);
    site.write("/etc/portico/apikey", "value", 0o600);
    deliver("/etc/portico/apikey");
    await site.activate();
  },
);

test("credentials and programs of units, as far as systemd opens them with root's rights or beside keys", () => {
  const directives = `LoadCredential=key:/etc/a\nExecStart=/usr/bin/a b\nExecReload=+/usr/bin/c\nExecStartPre=-"/usr/bin/d" e`;
  const all = ["/etc/a", "/usr/bin/a", "/usr/bin/c", "/usr/bin/d"];
  const paths = (text: string): string[] => pathsOf(text).map(({ path }) => path);
  expect(paths(directives)).toEqual(all);
  expect(paths(`User=portico\nDynamicUser=yes\n${directives}`)).toEqual(all);
  // The application's own programs are the application's user's.
  expect(paths(`User=sync\n${directives}`)).toEqual(["/etc/a", "/usr/bin/c"]);
  expect(paths("ExecStart=/usr/%i/a\nExecStart=")).toEqual([]);
});

test("a unit is refused for a credential or program that another user can change", async () => {
  const folder = mkdtempSync(join(tmpdir(), "portico-units-"));
  try {
    chmodSync(folder, 0o755);
    const [key, program] = [join(folder, "theirs/key"), join(folder, "theirs/node")];
    mkdirSync(join(folder, "theirs"));
    for (const file of [key, program]) writeFileSync(file, "", { mode: 0o755 });
    const unit = `LoadCredential=key:${key}\nExecStart=${program} serve\nExecStartPre=/bin/true\n`;
    const found = async (apart: string[] = []): Promise<string[]> =>
      (await unitPathProblems("a.service", unit, new Set(apart))).map(({ code, path }) => `${path}: ${code}`);
    expect(await found()).toEqual([]);
    lchownSync(join(folder, "theirs"), APP, APP);
    expect(await found()).toEqual([
      `a.service: LoadCredential (${key}): files.untrusted-path`,
      `a.service: ExecStart (${program}): files.untrusted-path`,
    ]);
    expect(await found([key, program])).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
