import { formatProblem, PROBLEM_CODES, type ProblemCode } from "../../src/model/index.js";
import { anchor } from "./anchor.js";
import { CHECK_ERRORS } from "./errors/checkErrors.js";
import { CONFIG_ERRORS } from "./errors/configErrors.js";
import type { ErrorEntry } from "./errors/entry.js";
import { HOST_ERRORS } from "./errors/hostErrors.js";
import { STACK_ERRORS } from "./errors/stackErrors.js";
import { type Page, page } from "./page.js";

/** The text for each code; a missing one is a compile error. */
const ENTRIES: Readonly<Record<ProblemCode, ErrorEntry>> = {
  ...CONFIG_ERRORS,
  ...STACK_ERRORS,
  ...CHECK_ERRORS,
  ...HOST_ERRORS,
};

/** What the first word of a code stands for. */
const AREAS: Readonly<Record<string, string>> = {
  config: "The proxy config and its constructs",
  acme: "Certificates from an authority (ACME)",
  host: "Addresses and names of a host",
  network: "The static network address",
  firewall: "The packet filter",
  bans: "Bans by programs of the host",
  pair: "A pair of hosts",
  unit: "systemd units",
  settings: "The application's own settings",
  container: "A proxy in containers",
  compose: "Files for Docker Compose",
  kubernetes: "A front end in a Kubernetes cluster",
  files: "Files on a host",
  tls: "TLS policies",
  listen: "Listening",
  serve: "Serving, reloading and upgrading",
  control: "Talking to a running proxy",
  activation: "Activation of a deployment",
  delivery: "Delivery over ssh",
  node: "The Node binary of a deployment",
};

/** `docs/errors.md`: every code with its meaning, an example and its fix. */
export async function errorsPage(): Promise<Page> {
  const codes = Object.keys(PROBLEM_CODES) as ProblemCode[];
  const areas = [...new Set(codes.map(areaOf))];
  const sections: string[] = [];
  // One after the other: an example may try a handshake, which must not take long.
  for (const area of areas) {
    sections.push(`## ${titleOf(area)}`);
    for (const code of codes.filter((one) => areaOf(one) === area)) sections.push(await codeText(code));
  }
  const contents = areas.map((area) => `- [${titleOf(area)}](#${anchor(titleOf(area))})`).join("\n");
  const from = "`src/model/text/problem.ts` and `build/docs/errors`";
  return page("docs/errors.md", from, [INTRODUCTION, contents, ...sections].join("\n\n"));
}

const INTRODUCTION = `# Problems and how to solve them

Every problem that Portico reports has a code. The code stays the same from release to release, so scripts can rely on it.
The report contains the place of the problem (a field of \`portico.json\`, a prop of a construct, or a file), the received
value, the allowed values and a fix; \`see:\` leads to the code on this page.

A stack reports problems when a construct is created or the app is synthesized. \`portico check\`, \`serve\`, \`reload\` and
\`upgrade\` report problems of a config, and \`portico activate\`, which Terraform runs, reports problems of a host. Portico
reports all problems at once.`;

const areaOf = (code: ProblemCode): string => code.split(".")[0]!;

function titleOf(area: string): string {
  const title = AREAS[area];
  if (title === undefined) throw new Error(`errorsPage.ts has no title for the codes ${area}.*`);
  return title;
}

async function codeText(code: ProblemCode): Promise<string> {
  const { means, cause, example } = ENTRIES[code];
  const shown = await example();
  if (shown.code !== code) throw new Error(`the example of ${code} has the code ${shown.code}`);
  return [
    `### \`${code}\``,
    means,
    ...(cause === undefined ? [] : [`\`\`\`ts\n${cause}\n\`\`\``]),
    `\`\`\`text\n${formatProblem(shown)}\n\`\`\``,
    ...(shown.fix === PROBLEM_CODES[code] ? [] : [`In general: ${PROBLEM_CODES[code]}`]),
  ].join("\n\n");
}
