import { type Command, InvalidArgumentError, Option } from "commander";
import { originOf, Replay } from "../../host/diagnosis/replay/replay.js";
import { type FileCount, readInto } from "../../host/diagnosis/replay/replayFile.js";
import { type Replayed, replayText } from "../../host/diagnosis/replay/replayText.js";
import {
  type Problem,
  problem,
  type ProxyConfig,
  type Scheme,
  serversOfSite,
  siteNotIn,
} from "../../model/index.js";
import { readDocument, sourceOf } from "../document.js";
import { EXIT, json, type CommandOutput, problemsText } from "../output.js";
import { refuseSite } from "../sites.js";

interface ReplayFlags {
  config: string;
  against?: string;
  againstLog?: boolean;
  root?: string;
  host?: string;
  site?: string;
  scheme?: Scheme;
  allow: Allowed;
  showSecrets?: boolean;
  json?: boolean;
}

/** How many requests may change: a number, or a share of all. */
type Allowed = { readonly requests: number } | { readonly share: number };

export function addReplay(program: Command, output: CommandOutput, done: (code: number) => void): void {
  const command = program
    .command("replay")
    .description(
      "run the requests of access logs through another config, and list those that it treats differently",
    )
    .argument("<LOG...>", "access logs, combined or JSON, also compressed by gzip; - is standard input")
    .requiredOption("--config <NEW>", "the new config")
    .option("--against <OLD>", "the config to compare with (default: that of this host)")
    .addOption(
      new Option(
        "--against-log",
        "compare with the statuses in the log, and with the routes in a JSON log",
      ).conflicts("against"),
    )
    .option("--root <DIR>", "directory to use as the host's /, for the default config")
    .option("--site <NAME>", "only requests that reach this site, with either config")
    .option(
      "--host <NAME>",
      "host of the requests in combined logs (default: the name of the only application, or of the site)",
    )
    .addOption(
      new Option(
        "--scheme <SCHEME>",
        "scheme of the requests in combined logs (default: https if the config has a listener for it)",
      ).choices(["http", "https"]),
    )
    .addOption(
      new Option("--allow <N>", "how many requests may change: a number such as 10, or a share such as 0.1%")
        .argParser(allowed)
        .default({ requests: 0 }, "0"),
    )
    .option("--show-secrets", "show queries, and parts of paths that look like tokens")
    .option("--json", "print the outcome as JSON")
    .addHelpText("after", HELP);
  command.action(async (logs: string[], flags: ReplayFlags) => {
    const inputs = [flags.config, flags.against, ...logs].filter((file) => file === "-");
    if (inputs.length > 1) command.error("error: standard input can be read only once");
    done(await replay(logs, flags, output));
  });
}

const HELP = `
Prints how many requests would get another virtual server, route, action, upstream, upstream path, file, Location or
status, with up to three examples of each change. The command sends no request, so it compares no responses of
upstreams, and does not check whether a file exists.

Lines of combined logs contain neither host nor scheme: if virtual servers have separate combined logs, give one log at
a time, with its --host. The command counts lines that are not from an access log.

Exit codes: 0 if no more requests change than --allow permits, 1 if more change or a file could not be read, 2 wrong
usage.

Examples:
  portico replay /var/log/portico/access.log* --config ./portico.json
  portico replay access.log.gz --config new.json --against old.json --json
  portico replay access.log --config new.json --site vault
  portico replay /var/log/nginx/access.log --config portico.json --against-log --host files.example.org`;

async function replay(logs: readonly string[], flags: ReplayFlags, output: CommandOutput): Promise<number> {
  const refused = (file: string, problems: readonly Problem[]): number => {
    output.out(flags.json === true ? json({ file, ok: false, problems }) : problemsText(file, problems));
    return EXIT.failed;
  };
  const after = await configOf(sourceOf(flags.config, undefined).file);
  if ("problems" in after) return refused(after.file, after.problems);
  const before =
    flags.againstLog === true ? undefined : await configOf(sourceOf(flags.against, flags.root).file);
  if (before !== undefined && "problems" in before) return refused(before.file, before.problems);
  const { site } = flags;
  const configs = before === undefined ? [after.config] : [before.config, after.config];
  const unknown = siteNotIn(
    { virtualServers: configs.flatMap(({ virtualServers }) => virtualServers) },
    site,
  );
  if (unknown !== undefined) return refuseSite(unknown, flags.json, output);
  const servers =
    site === undefined ? undefined : new Set(configs.flatMap((one) => [...serversOfSite(one, site)]));
  const origin = originOf(configs[0]!, { ...flags, servers });
  // If each line names its host, no choice is needed.
  const assumed = "names" in origin ? { scheme: "https" as const, host: origin.names[0]! } : origin;
  const run = new Replay({
    before: before?.config,
    after: after.config,
    origin: assumed,
    secrets: flags.showSecrets === true,
    servers,
  });
  const files: FileCount[] = [];
  for (const log of logs) {
    const counted = await readInto(run, log, "names" in origin);
    files.push(counted);
    if (counted.hostMissing && "names" in origin) {
      output.err(`error: ${log} does not name hosts: give --host, one of ${origin.names.join(", ")}\n`);
      return EXIT.usage;
    }
  }
  const replayed = {
    before: before === undefined ? undefined : before.file,
    after: after.file,
    files,
    run,
    problems: files.flatMap(problemsOf),
  };
  const ok = replayed.problems.length === 0 && isAllowed(run, flags.allow);
  output.out(flags.json === true ? json(jsonOf(replayed, ok)) : replayText(replayed));
  return ok ? EXIT.ok : EXIT.failed;
}

type ReadResult = { readonly file: string } & (
  | { readonly config: ProxyConfig }
  | { readonly problems: readonly Problem[] }
);

async function configOf(file: string): Promise<ReadResult> {
  const read = await readDocument(file);
  return read.ok ? { file, config: read.value } : { file, problems: read.problems };
}

/** A gate that lets something pass because it read nothing would be none. */
function problemsOf({ file, failure, lines, noLog }: FileCount): readonly Problem[] {
  const alien =
    lines > 0 && noLog === lines ? [problem("files.not-a-log", file, "has no line of an access log")] : [];
  return failure === undefined ? alien : [failure, ...alien];
}

function isAllowed({ changed, requests }: Replay, allow: Allowed): boolean {
  return changed <= ("requests" in allow ? allow.requests : allow.share * requests);
}

function jsonOf({ before, after, files, run, problems }: Replayed, ok: boolean): unknown {
  const { requests, changed, unknownBodies, groups } = run;
  const read = files.map(({ file, lines, requests: of, noRequest, cut, noLog }) => {
    return { file, lines, requests: of, noRequest, cut, noLog };
  });
  return {
    ok,
    before: before ?? null,
    after,
    files: read,
    requests,
    changed,
    unknownBodies,
    groups,
    problems,
  };
}

function allowed(text: string): Allowed {
  const [, number, percent] = /^(\d{1,15}(?:\.\d{1,9})?)(%?)$/.exec(text) ?? [];
  if (number !== undefined && percent === "%" && Number(number) <= 100)
    return { share: Number(number) / 100 };
  if (number !== undefined && percent === "" && !number.includes(".")) return { requests: Number(number) };
  throw new InvalidArgumentError("Give a whole number such as 10, or a share of all requests such as 0.1%.");
}
