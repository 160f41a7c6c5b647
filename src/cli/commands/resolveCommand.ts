import { type Command, InvalidArgumentError } from "commander";
import { printableValue } from "../../model/text/printable.js";
import { type Problem, ProblemError } from "../../model/text/problem.js";
import { NO_RESPONSE } from "../../model/config/accessJudge.js";
import { EXAMPLE_CLIENT, type Resolution, resolution, type TestRequest } from "../../model/resolution.js";
import { WINDOWS_DRIVES } from "../../host/diagnosis/decisionSteps.js";
import { readDocument, sourceOf } from "../document.js";
import { EXIT, json, type CommandOutput, problemsText } from "../output.js";

interface ResolveFlags {
  config?: string;
  root?: string;
  method: string;
  header?: Record<string, string[]>;
  client?: string;
  listener?: string;
  json?: boolean;
}

export function addResolve(program: Command, output: CommandOutput, done: (code: number) => void): void {
  program
    .command("resolve")
    .description("show how a config handles a request: virtual server, route and upstream request")
    .argument("<URL>", "an http or https URL; its path is used byte for byte")
    .option("--config <FILE>", "the config (default: that of this host); - is standard input")
    .option("--root <DIR>", "directory to use as the host's /, for the default config")
    .option("--method <METHOD>", "method of the request", "GET")
    .option("--header <NAME:VALUE>", "header field of the request; may be given several times", collectField)
    .option("--client <ADDRESS>", "address that the request comes from (default: 198.51.100.7)")
    .option("--listener <NAME>", "listener that gets the request (default: the one that matches the URL)")
    .option("--json", "print the result as JSON")
    .addHelpText(
      "after",
      `
The command sends no request, and reads only the config: it prints the path of a static file even if the file does not
exist. It uses the routing code of the proxy, as \`resolve\` in unit tests does.

Examples:
  portico resolve https://files.example.org/sync/
  portico resolve http://192.0.2.10/ --config ./portico.json --json
  portico resolve https://files.example.org/dav/a --method MOVE --header "Destination: https://files.example.org/dav/b"`,
    )
    .action(async (url: string, flags: ResolveFlags) => done(await resolve(url, flags, output)));
}

async function resolve(url: string, flags: ResolveFlags, output: CommandOutput): Promise<number> {
  const { file } = sourceOf(flags.config, flags.root);
  const document = await readDocument(file);
  const refused = (problems: readonly Problem[], code: number): number => {
    output.out(flags.json === true ? json({ file, ok: false, problems }) : problemsText(file, problems));
    return code;
  };
  if (!document.ok) return refused(document.problems, EXIT.failed);
  const request: TestRequest = {
    url,
    method: flags.method,
    headers: flags.header ?? {},
    clientAddress: flags.client,
    listener: flags.listener,
  };
  let resolved: Resolution;
  try {
    resolved = resolution(document.value, request);
  } catch (error) {
    if (error instanceof ProblemError) return refused(error.problems, EXIT.usage);
    throw error;
  }
  output.out(flags.json === true ? json({ file, ok: true, ...resolved }) : resolutionText(request, resolved));
  return EXIT.ok;
}

export function resolutionText(request: TestRequest, resolved: Resolution): string {
  const { listener, virtualServer, route = "none", clientAddress } = resolved;
  const isExample = request.clientAddress === undefined && clientAddress === EXAMPLE_CLIENT;
  const fields = Object.entries(resolved.responseHeaders).map(([name, value]) => `${name}: ${value}`);
  const rows: readonly (readonly [label: string, values: readonly string[]])[] = [
    ["listener", [listener]],
    ["virtual server", [virtualServer]],
    ["route", [route]],
    ["access", resolved.access === undefined ? [] : [resolved.access]],
    ["sign-on", resolved.forwardAuth === undefined ? [] : [resolved.forwardAuth]],
    ["password guard", resolved.passwordGuard === undefined ? [] : [resolved.passwordGuard]],
    ["client", [isExample ? `${clientAddress}, an example: --client gives another` : clientAddress]],
    ["response", responseLines(resolved)],
    ["fields set", fields],
    ["fields removed", resolved.removedResponseHeaders],
  ];
  const lines = rows.flatMap(([label, values]) =>
    // A path is decoded, and may have been copied from a log.
    values.map((value, i) => `  ${(i === 0 ? label : "").padEnd(16)}${printableValue(value)}\n`),
  );
  return `${request.method} ${request.url}\n${lines.join("")}`;
}

function responseLines(resolved: Resolution): readonly string[] {
  switch (resolved.kind) {
    case "proxy": {
      const fields = Object.entries(resolved.headers).map(([name, value]) => `  ${name}: ${value}`);
      return [
        ...(resolved.servers === undefined
          ? [`proxied to ${resolved.upstreamUrl} (${resolved.upstream})`]
          : [`proxied to a server of ${resolved.upstream}`]),
        ...(resolved.servers ?? []).map(({ url, why }) => `  ${url}: ${why}`),
        ...(resolved.writes
          ? ["  the request writes: `portico quiesce` refuses it while its command runs"]
          : []),
        `  ${resolved.requestLine}`,
        ...fields,
      ];
    }
    case "staticFile":
      return [
        `the file ${resolved.file}`,
        ...(resolved.encodedFiles ?? []).map((file) => `  or ${file}, if that file exists`),
      ];
    case "redirect":
      return [`${resolved.status} to ${resolved.location}`];
    case "respond":
      if (resolved.windowsDrives) return [WINDOWS_DRIVES];
      return [
        `${resolved.status}, a fixed response`,
        ...resolved.body
          .trimEnd()
          .split("\n")
          .map((line) => `  ${line}`),
      ];
    case "status":
      return ["the status page"];
    case "error": {
      const { refusal, status } = resolved;
      const why =
        refusal === undefined ? [] : [`  \`${refusal.by}\` of ${refusal.policy} does not let the client in`];
      return [
        status === NO_RESPONSE ? "none: the connection is closed" : `${status}, ${pageNamed(resolved)}`,
        ...why,
      ];
    }
  }
}

function pageNamed({ page }: Resolution & { readonly kind: "error" }): string {
  if (page === undefined) return "an error page";
  return "file" in page ? `the error page ${page.file}` : "an error page of the config";
}

/** Collects the values of `--header`, which may be repeated. */
function collectField(given: string, before: Record<string, string[]> = {}): Record<string, string[]> {
  const at = given.indexOf(":");
  if (at < 1) throw new InvalidArgumentError("Give NAME:VALUE, such as Destination:/dav/b.");
  const name = given.slice(0, at);
  return { ...before, [name]: [...(before[name] ?? []), given.slice(at + 1).trim()] };
}
