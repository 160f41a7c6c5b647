import {
  CATCH_ALL,
  clientPort,
  formatProblem,
  type Problem,
  type ProxyConfig,
  reachableAt,
  sampleNames,
  shownSites,
  siteOf,
  urlAuthority,
} from "../model/index.js";
import { EXIT, json, type CommandOutput } from "./output.js";

/** What commands with `--site` have in common. */

/** Reports the name of no site, and returns the exit code. */
export function refuseSite(unknown: Problem, inJson: boolean | undefined, output: CommandOutput): number {
  if (inJson === true) output.out(json({ ok: false, problems: [unknown] }));
  else output.err(`${formatProblem(unknown)}\n`);
  return EXIT.usage;
}

/** The origin at which clients find a site: its first name, over https if it has it. */
export function originOfSite({ listeners, virtualServers }: ProxyConfig, site: string): string {
  const servers = virtualServers.filter((server) => siteOf(server) === site);
  const all = listeners.filter(({ name }) => servers.some((server) => server.listeners.includes(name)));
  const listener = all.find(({ protocol }) => protocol === "https") ?? all[0]!;
  const [name = reachableAt(listener.address)] = sampleNames(
    servers.flatMap(({ serverNames }) => serverNames.filter((one) => one !== CATCH_ALL)),
  );
  return `${listener.protocol}://${urlAuthority(listener.protocol, name, clientPort(listener))}`;
}

interface OfSite {
  readonly site?: string | undefined;
}

/** Rows of one site and of none, or all; with their sites as far as the config says which servers belong together. */
export function rowsOfSite<T extends OfSite>(rows: readonly T[], config: ProxyConfig, wanted?: string): T[] {
  const shown = shownSites(config);
  return rows
    .filter(({ site }) => wanted === undefined || site === undefined || site === wanted)
    .map((row) => (row.site === undefined || shown.includes(row.site) ? row : { ...row, site: undefined }));
}

/** The text of rows, below the names of their sites if there are several; those of no site come first. */
export function textBySite<T extends OfSite>(rows: readonly T[], text: (row: T) => string): string {
  const sites = [...new Set(rows.flatMap(({ site }) => site ?? []))];
  const textOf = (site: string | undefined): string =>
    rows.flatMap((row) => (row.site === site ? text(row) : [])).join("");
  if (sites.length < 2) return rows.map(text).join("");
  return `${textOf(undefined)}${sites.map((site) => `\nsite ${site}\n${textOf(site)}`).join("")}\n`;
}
