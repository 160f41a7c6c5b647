import { chownSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { copyOfBundle, FILLED_MEMORY } from "../../testkit/sharedBundle.js";
import { sharedFile } from "../../testkit/sharedFile.js";
import { type RunningProcess, startProcess } from "./processes.js";
import { logsOf, type Mode, type Ports, type Site, sitePaths } from "./site.js";

/** Puts the bundle of the sources as they are where the user of the test may read it. */
export async function installPortico(site: Site): Promise<string> {
  return copyOfBundle(path.join(site.folder, "portico.mjs"));
}

/** Starts the real `portico serve` on the config of the front end. */
export async function startPortico(
  bundle: string,
  mode: Mode,
  site: Site,
  ports: Ports,
): Promise<RunningProcess> {
  const logs = logsOf(mode, site);
  mkdirSync(logs, { recursive: true });
  if (site.user !== undefined) chownSync(logs, site.user.uid, site.user.gid);
  const config = path.join(site.folder, `portico-${mode}`, "portico.json");
  writeFileSync(config, await configOf(mode, site, ports));
  return startProcess({
    command: ["env", FILLED_MEMORY, process.execPath, bundle, "serve", config],
    user: site.user,
    ports: mode === "tls" ? [ports.http, ports.https] : [ports.http],
  });
}

/** What a front end of the file-sync service deploys, on the test's ports and paths. */
async function configOf(mode: Mode, site: Site, ports: Ports): Promise<string> {
  const text = (JSON.parse(readFileSync(await sharedConfigs(), "utf8")) as Record<Mode, string>)[mode];
  const names = Object.keys(PLACES.ports) as (keyof Ports)[];
  const nameAt = new Map(names.map((name) => [String(PLACES.ports[name]), name]));
  return text
    .replaceAll(PLACES.folder, site.folder)
    .replace(/\b6100\d\b/g, (place) => String(ports[nameAt.get(place)!]));
}

/** What stands in the configs that all tests of a run share where each has its own. */
const PLACES = {
  folder: "/folder-of-the-site",
  ports: { http: 61_001, https: 61_002, web: 61_003, files: 61_004, dav: 61_005 },
} as const;

// The constructs take longer to load than all that is tested with what they deploy.
const sharedConfigs = (): Promise<string> =>
  sharedFile("front-end-configs.json", async (file) => {
    const { porticoConfig } = await import("./porticoConfig.js");
    const site = sitePaths(PLACES.folder);
    const configs = {
      plain: porticoConfig("plain", site, PLACES.ports),
      tls: porticoConfig("tls", site, PLACES.ports),
    };
    writeFileSync(file, JSON.stringify(configs));
  });
