import type { Command } from "commander";
import { type ConfigLog, logsOfConfig } from "../../host/diagnosis/logs/configLogs.js";
import { decisionSteps, type DecisionStep } from "../../host/diagnosis/decisionSteps.js";
import { findRequest, type FoundRequest } from "../../host/diagnosis/logs/why.js";
import { ERROR_TOKENS, type ErrorToken } from "../../model/net/errorTokens.js";
import {
  formatProblem,
  type Problem,
  problem,
  ProblemError,
  type ProxyConfig,
  serversOfSite,
  siteNotIn,
} from "../../model/index.js";
import { printableValue } from "../../model/text/printable.js";
import { type Resolution, resolution } from "../../model/resolution.js";
import { numberOf, textOf } from "../../host/diagnosis/logs/logEntry.js";
import { shownText } from "../../host/diagnosis/replay/replayTexts.js";
import { readDocument, sourceOf } from "../document.js";
import { entryText, shownTarget } from "../logText.js";
import { EXIT, json, type CommandOutput, refusal } from "../output.js";
import { originOfSite, refuseSite } from "../sites.js";
import { resolutionText } from "./resolveCommand.js";

interface WhyFlags {
  config?: string;
  root?: string;
  site?: string;
  log?: readonly string[];
  method: string;
  client?: string;
  showSecrets?: boolean;
  json?: boolean;
}

export function addWhy(program: Command, output: CommandOutput, done: (code: number) => void): void {
  program
    .command("why")
    .description("explain a request, by its URL or its id: the rules that apply, and the outcome")
    .argument(
      "<URL|ID>",
      "an http or https URL, with --site also a path, or a request id of a log or an error page",
    )
    .option("--config <FILE>", "the config (default: that of this host); - is standard input")
    .option("--root <DIR>", "directory to use as the host's /, for the default config and the logs")
    .option(
      "--log <FILE>",
      "look for the id in this log; may be given several times (default: the logs of the config)",
      (file: string, before: readonly string[] = []) => [...before, file],
    )
    .option("--site <NAME>", "site of the path, or of the request with the id")
    .option("--method <METHOD>", "method of the request, for a URL", "GET")
    .option("--client <ADDRESS>", "client address of the request, for a URL (default: 198.51.100.7)")
    .option("--show-secrets", "show queries, and parts of paths that look like tokens")
    .option("--json", "print the outcome as JSON")
    .addHelpText("after", HELP)
    .action(async (about: string, flags: WhyFlags) => done(await why(about, flags, output)));
}

const HELP = `
With a URL, the command sends nothing and reads no log: it prints the result of \`resolve\`, and the rules that apply.
With an id, it searches JSON access logs and error logs, including rotated logs, for the request, and prints its times,
its failure and the fix. With \`requestId\` in the config every request has an id; without it, only requests with an error
page of the config have one.

Exit codes: 0 found; 1 not found, or a file could not be read; 2 wrong usage.

Examples:
  portico why https://files.example.org/sync/
  portico why /api/ --site vault
  portico why 4bf92f3577b34da6a3ce929d0e0e4736
  portico why 4bf92f3577b34da6 --log /srv/old/access.log.gz --json`;

async function why(about: string, flags: WhyFlags, output: CommandOutput): Promise<number> {
  const { file, root } = sourceOf(flags.config, flags.root);
  const document = await readDocument(file);
  if (!document.ok) {
    output.out(refusal(file, document.problems, flags.json));
    return EXIT.failed;
  }
  const config = document.value;
  const { site } = flags;
  const unknown = siteNotIn(config, site);
  if (unknown !== undefined) return refuseSite(unknown, flags.json, output);
  const isUrl = /^https?:\/\//i.test(about);
  const isPath = site !== undefined && about.startsWith("/");
  if (isUrl && site === undefined) return whyUrl(about, { file, config }, flags, output);
  if (isPath) return whyUrl(originOfSite(config, site) + about, { file, config }, flags, output);
  if (ID.test(about) && !isUrl) {
    const { logs } = logsOfConfig(config, root);
    return whyId(about, { file, config, logs }, flags, output);
  }
  output.err(
    isUrl
      ? "error: the name in the URL is that of a site: with --site, give a path such as /, or a request id\n"
      : "error: give a URL such as https://files.example.org/, a path with --site, or a request id from a log or an error page\n",
  );
  return EXIT.usage;
}

/** The ids that `requestId.ts` accepts and makes. */
const ID = /^[0-9A-Za-z][0-9A-Za-z._:+/=-]{0,127}$/;

interface NamedConfig {
  readonly file: string;
  readonly config: ProxyConfig;
}

interface LoadedWithLogs extends NamedConfig {
  readonly logs: readonly ConfigLog[];
}

function whyUrl(
  url: string,
  { file, config }: NamedConfig,
  { method, client, json: asJson }: WhyFlags,
  output: CommandOutput,
): number {
  const request = { url, method, clientAddress: client };
  let resolved: Resolution;
  try {
    resolved = resolution(config, request);
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    output.out(refusal(file, error.problems, asJson));
    return EXIT.usage;
  }
  const [, scheme, authority, rest] = /^(https?):\/\/([^/?#]*)(.*)$/is.exec(url)!;
  const { steps } = decisionSteps(config, {
    scheme: scheme!.toLowerCase() as "http" | "https",
    authority: authority!,
    target: rest!.startsWith("/") ? rest! : `/${rest}`,
    method,
    bodyBytes: -1,
    client: resolved.clientAddress,
  });
  output.out(
    asJson === true
      ? json({ file, ok: true, decisions: steps, ...resolved })
      : `${resolutionText(request, resolved)}decided by\n${stepsText(steps)}`,
  );
  return EXIT.ok;
}

async function whyId(
  id: string,
  loaded: LoadedWithLogs,
  flags: WhyFlags,
  output: CommandOutput,
): Promise<number> {
  const { file, config, logs } = loaded;
  const { site } = flags;
  const servers = site === undefined ? undefined : serversOfSite(config, site);
  const own = logs.filter(({ routes }) => routes.some(({ server }) => servers?.has(server.name) !== false));
  const all = await findRequest(id, servers === undefined ? logs : own, flags.log ?? []);
  const by = all.access?.request?.server;
  const isOther = by !== undefined && servers?.has(by) === false;
  const found = isOther ? { ...all, access: undefined, errors: [] } : all;
  if (found.access === undefined && found.errors.length === 0) {
    const missing = notFound(id, loaded, found, flags);
    output.out(
      flags.json === true
        ? json({ file, ok: false, id, problems: [missing], read: found.read })
        : `${formatProblem(missing)}\n`,
    );
    return EXIT.failed;
  }
  const secrets = flags.showSecrets === true;
  const decided = decisionsOf(config, found);
  if (flags.json === true) output.out(json(asJson(id, file, found, decided, secrets)));
  else output.out(foundText(id, file, found, decided, secrets));
  return EXIT.ok;
}

function notFound(
  id: string,
  { file, config, logs }: LoadedWithLogs,
  { read, cut }: FoundRequest,
  { log: given = [], site }: WhyFlags,
): Problem {
  const access = logs.filter(({ kind }) => kind === "access");
  if (given.length === 0 && !access.some(({ format }) => format === "json")) {
    const what =
      access.length === 0
        ? "logs no requests to files"
        : "logs requests in the format combined, which has no ids";
    return problem("files.no-request-ids", file, what);
  }
  const looked = read.length > 0 ? read : given.length > 0 ? given : access.map(({ path }) => path);
  if (read.length === 0)
    return problem("files.unreadable", looked.join(", "), "cannot be read, or does not exist", {
      fix: "Run it as root, or give a log that you may read: --log FILE.",
    });
  const of = site === undefined ? "" : `, of a request to site ${site}`;
  const message = `has no line with the request id${of}${cut ? " in its last GiB" : ""}`;
  const fix =
    config.requestId === undefined
      ? "Set `requestId` to {}: without it, only requests with an error page of the config have an id."
      : undefined;
  return problem("files.request-not-found", looked.join(", "), message, {
    received: id,
    fix,
  });
}

function decisionsOf(config: ProxyConfig, { access }: FoundRequest): readonly DecisionStep[] {
  const request = access?.request;
  if (request === undefined) return [];
  const { steps, match } = decisionSteps(config, {
    scheme: request.scheme ?? "https",
    authority: request.host ?? "",
    method: request.method,
    target: request.target,
    listener: config.listeners.some(({ name }) => name === request.listener) ? request.listener : undefined,
    bodyBytes: request.bodyBytes,
    headers: ["User-Agent", request.userAgent ?? ""],
    client: request.client,
  });
  const [now, then] = [
    `${match?.server.name}/${match?.route?.name ?? "none"}`,
    `${request.server}/${request.route ?? "none"}`,
  ];
  return now === then
    ? steps
    : [
        ...steps,
        { rule: "changed since", outcome: `the request took ${then}: the config was another one then` },
      ];
}

/** The failure of the request, as far as it is known. */
function failureOf({ access }: FoundRequest): { token: string; message: string; fix: string } | undefined {
  const token = textOf(access?.fields?.["error"]);
  if (token === undefined) return undefined;
  const known = Object.hasOwn(ERROR_TOKENS, token) ? ERROR_TOKENS[token as ErrorToken] : undefined;
  return {
    token,
    message: known?.message ?? "unknown to this version",
    fix: known?.fix ?? "Look at the error log.",
  };
}

/** Milliseconds of each step; unknown ones are left out. */
function timesOf({ access }: FoundRequest): readonly (readonly [what: string, ms: number])[] {
  const of = (name: string): number | undefined => numberOf(access?.fields?.[name]);
  const [all, head, connect, wait] = [
    "request_time_ms",
    "time_to_first_byte_ms",
    "upstream_connect_ms",
    "upstream_wait_ms",
  ].map(of);
  const until = head ?? all;
  const rows: readonly (readonly [string, number | undefined])[] = [
    [
      "before the request got a connection to the upstream",
      wait === undefined || until === undefined ? undefined : Math.max(0, until - wait),
    ],
    ["to open this connection", connect],
    [
      "to get the upstream's response, or the failure",
      wait === undefined ? undefined : Math.max(0, wait - (connect ?? 0)),
    ],
    ["until the proxy sent the head of the response", head],
    [
      "to send the body of the response",
      head === undefined || all === undefined ? undefined : Math.max(0, all - head),
    ],
    ["in total", all],
  ];
  return rows.filter((row): row is readonly [string, number] => row[1] !== undefined);
}

function asJson(
  id: string,
  file: string,
  found: FoundRequest,
  decisions: readonly DecisionStep[],
  secrets: boolean,
): object {
  const { access, errors, read } = found;
  const fields = access?.fields ?? {};
  const referer = textOf(fields["referer"]);
  const request =
    access === undefined
      ? null
      : {
          ...fields,
          target: shownTarget(textOf(fields["target"]) ?? "", secrets),
          referer: referer === undefined ? null : shownTarget(referer, secrets),
        };
  return {
    file,
    ok: true,
    id,
    request,
    decisions,
    times: Object.fromEntries(timesOf(found)),
    error: failureOf(found) ?? null,
    errorLog: errors.map((entry) => entryText(entry, secrets).trimEnd()),
    read,
  };
}

function foundText(
  id: string,
  file: string,
  found: FoundRequest,
  decisions: readonly DecisionStep[],
  secrets: boolean,
): string {
  const { access, errors, read } = found;
  const failure = failureOf(found);
  const [upstream, server] = ["upstream", "upstream_server"].map((name) => {
    const text = textOf(access?.fields?.[name]);
    return text === undefined ? undefined : shownText(text, true);
  });
  return [
    `request ${id}\n`,
    access === undefined
      ? `  no line in an access log; read: ${read.join(", ")}\n`
      : `  ${entryText(access, secrets)}`,
    ...(decisions.length === 0
      ? []
      : [`decided by ${file}, as it is now\n`, stepsText(decisions.map((one) => hidden(one, secrets)))]),
    ...(upstream === undefined
      ? []
      : [
          `upstream\n  ${upstream}, ${server === undefined ? "but no server got the request" : `server ${server}`}\n`,
        ]),
    ...(access === undefined
      ? []
      : ["times\n", ...timesOf(found).map(([what, ms]) => `  ${`${ms} ms`.padStart(10)}  ${what}\n`)]),
    ...(failure === undefined
      ? []
      : [`failed: ${shownText(failure.token, true)}\n  ${failure.message}\n    fix: ${failure.fix}\n`]),
    ...(errors.length === 0
      ? []
      : ["error log\n", ...errors.map((entry) => `  ${entryText(entry, secrets)}`)]),
  ].join("");
}

/** Paths and results can contain tokens and queries, as the request line does. */
const hidden = ({ rule, outcome }: DecisionStep, secrets: boolean): DecisionStep => ({
  rule,
  outcome: outcome
    .split(" ")
    .map((word) => (word.includes("/") ? shownTarget(word, secrets) : word))
    .join(" "),
});

/** Made printable, because paths are decoded here: a client could add a line with `%0A`. */
const stepsText = (steps: readonly DecisionStep[]): string =>
  steps.map(({ rule, outcome }) => `  ${`${rule} `.padEnd(18)}${printableValue(outcome)}\n`).join("");
