import { DAY_MS } from "../../model/text/duration.js";
import { type Command, InvalidArgumentError } from "commander";
import { logsOfConfig } from "../../host/diagnosis/logs/configLogs.js";
import { type FollowedLine, LogFollower } from "../../host/diagnosis/logs/logFollower.js";
import { matcherOf } from "../../host/diagnosis/logs/logFilter.js";
import { CIDR } from "../../model/schema/fields.js";
import { problem } from "../../model/text/problem.js";
import { siteNotIn } from "../../model/config/sites.js";
import { accepting } from "../../model/text/textRule.js";
import { readDocument, sourceOf } from "../document.js";
import { entryJson, entryText } from "../logText.js";
import { duration, wholeNumber } from "../options.js";
import { EXIT, type CommandOutput, refusal } from "../output.js";
import { refuseSite } from "../sites.js";

interface LogFlags {
  config?: string;
  root?: string;
  route?: string;
  site?: string;
  status?: (status: number) => boolean;
  client?: string;
  method?: string;
  since?: number;
  lines: number;
  follow: boolean;
  errors?: boolean;
  showSecrets?: boolean;
  json?: boolean;
}

export function addLog(program: Command, output: CommandOutput, done: (code: number) => void): void {
  program
    .command("log")
    .description("follow the access logs of all routes, through rotations")
    .option("--config <FILE>", "the config (default: that of this host); - is standard input")
    .option("--root <DIR>", "directory to use as the host's /, for the default config and the logs")
    .option("--route <NAME>", "only requests of this route")
    .option("--site <NAME>", "only requests to this site")
    .option("--status <STATUS>", "only these statuses: 404, 5xx, or a list such as 404,5xx", statuses)
    .option("--client <CIDR>", "only requests from this address or range", range)
    .option("--method <METHOD>", "only requests with this method")
    .option(
      "--since <TIME>",
      "begin with the lines of this period, such as 90s, 10m or 2h; read rotated logs too",
      duration(DAY_MS),
    )
    .option("--lines <N>", "begin with this many lines, unless --since is given", wholeNumber(0, 100_000), 10)
    .option("--no-follow", "exit after these lines, and do not follow the logs")
    .option("--errors", "show the error logs as well")
    .option("--show-secrets", "show queries, and parts of paths that look like tokens")
    .option("--json", "print each line as one line of JSON")
    .addHelpText("after", HELP)
    .action(async (flags: LogFlags) => done(await log(flags, output)));
}

const HELP = `
The command reads both formats of access logs, combined and JSON. It prints the time, status, request, bytes and client
of each line; for a JSON log also the duration, virtual server, route, upstream server, error token (\`portico why\`
explains it) and request id. If several routes share a combined log, --route selects lines by their path. In error
logs, --since and --client select lines, --route and --site select logs, and --status and --method have no effect.

Examples:
  portico log
  portico log --status 5xx --errors
  portico log --site vault --since 10m
  portico log --route files --client 10.0.0.0/8 --since 10m --no-follow`;

async function log(flags: LogFlags, output: CommandOutput): Promise<number> {
  const { file, root } = sourceOf(flags.config, flags.root);
  const document = await readDocument(file);
  if (!document.ok) {
    output.out(refusal(file, document.problems, flags.json));
    return EXIT.failed;
  }
  const config = document.value;
  const { logs, streams } = logsOfConfig(config, root);
  const shown = logs.filter(({ kind }) => kind === "access" || flags.errors === true);
  const noSite = siteNotIn(config, flags.site);
  if (noSite !== undefined) return refuseSite(noSite, flags.json, output);
  const unknown = unknownRoute(flags, config);
  if (unknown !== undefined) {
    output.err(`error: ${unknown}\n`);
    return EXIT.usage;
  }
  if (!shown.some(({ kind }) => kind === "access")) {
    const missing = problem(
      "files.no-request-ids",
      file,
      `logs no requests to files${toStreams(streams)}`,
      streamFix(streams),
    );
    output.out(refusal(file, [missing], flags.json));
    return EXIT.failed;
  }
  const matches = matcherOf(flags, config);
  const secrets = flags.showSecrets === true;
  const print = ({ entry, log: of }: FollowedLine): void =>
    output.out(flags.json === true ? entryJson(entry, of, secrets) : entryText(entry, secrets));
  const follower = new LogFollower(shown, matches, print);
  const unreadable = await follower.begin({
    since: flags.since === undefined ? undefined : Date.now() - flags.since,
    lines: flags.lines,
  });
  for (const path of unreadable) output.err(`warning: ${path} cannot be read, or does not exist yet\n`);
  if (!flags.follow) {
    follower.close();
    return unreadable.length === shown.length ? EXIT.failed : EXIT.ok;
  }
  await interrupted(follower);
  return EXIT.ok;
}

const toStreams = (streams: readonly string[]): string =>
  streams.length === 0 ? "" : `, but to ${streams.join(" and ")}`;

const streamFix = (streams: readonly string[]): { readonly fix?: string } =>
  streams.length === 0 ? {} : { fix: "Use `journalctl -u portico`, or the logs of the container's engine." };

function unknownRoute(
  { route }: LogFlags,
  { virtualServers }: Parameters<typeof logsOfConfig>[0],
): string | undefined {
  const routes = virtualServers.flatMap(({ routes: all }) => all.map(({ name }) => name));
  if (route !== undefined && !routes.includes(route))
    return `no route is named ${route}; the config has ${[...new Set(routes)].join(", ")}`;
  return undefined;
}

/** Resolves at Ctrl-C, or when the reader closes the output. */
async function interrupted(follower: LogFollower): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => follower.poll(), POLL_MS);
    const end = (): void => {
      clearInterval(timer);
      for (const signal of SIGNALS) process.off(signal, end);
      process.stdout.off("error", end);
      resolve();
    };
    for (const signal of SIGNALS) process.on(signal, end);
    process.stdout.on("error", end);
  });
  follower.close();
}

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const POLL_MS = 250;

function statuses(text: string): (status: number) => boolean {
  const each = text.split(",");
  if (!each.every((one) => /^[1-5](?:\d\d|xx)$/.test(one)))
    throw new InvalidArgumentError(
      "Give a status such as 404, a class such as 5xx, or a list such as 404,5xx.",
    );
  return (status) =>
    each.some((one) => (one.endsWith("xx") ? String(status)[0] === one[0] : Number(one) === status));
}

function range(text: string): string {
  if (accepting(CIDR)(text)) return text;
  throw new InvalidArgumentError("Give an address or a range, such as 192.0.2.7 or 10.0.0.0/8.");
}
