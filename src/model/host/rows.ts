import * as z from "zod";
import type { OutputOf } from "../schema/inferred.js";
import type { ExpectedRow } from "./expect.js";
import { filePath, flag, line, name } from "../schema/fields.js";
import { type Problem, problem } from "../text/problem.js";

/**
 * Rows of `portico doctor` that a deployment defines. A row reports all trees, daemons and causes of expected responses
 * with its code.
 */

/** Most rows of a deployment, and most trees. */
const ROWS_MAX = 50;

/** The row that collects requests that no virtual server or route was meant for. */
export const SERVER_NAME = "server-name";

/** The cause that this row names, if no virtual server of the config has the name of a request. */
export const WRONG_NAME =
  "the server name in the proxy config is not the host address or domain used in the request, or the config is not enabled";

/** The row of settings items that no other row tells of. */
export const SETTINGS = "settings";

/** The row of directories that static routes serve and no tree of the deployment has. */
export const DIRECTORIES = "directories";

/** Rows that every host has, besides one for each expected response. */
export const ENGINE_ROWS = [
  "activation",
  "files",
  "units",
  "config",
  "proxy",
  "running",
  "tls",
  "logs",
  "space",
  "addresses",
  "firewall",
  "ports",
  SERVER_NAME,
  DIRECTORIES,
  SETTINGS,
  "hairpin",
  "outside",
  "rotation",
  "memory",
  "health",
  "upstreams",
  "pauses",
  "client-certificates",
  "acme-clock",
  "acme-authority",
  "acme-account",
  "acme-limit",
  "acme-dns",
  "acme-record",
  "acme-port",
  "acme-certificates",
  "node-fixes",
  "node",
] as const;
export type EngineRow = (typeof ENGINE_ROWS)[number];

/** The text of `code` in a tree and in a daemon. */
export const TOLD_BY =
  "Row of `portico doctor` that reports problems of this entry: the `code` of one of `rows`.";

export const row = z.strictObject({
  code: name(
    "Id of the row, to which other `code` fields refer. Ids of rows that every host has are refused.",
  ),
  title: line("Title of the row."),
  site: name("Site of the row. Default: the one of the host's own names, `application`.").optional(),
});

export const tree = z.strictObject({
  path: filePath("Path of the directory."),
  code: name(TOLD_BY),
  message: line("The cause in words, if others cannot read something in the directory."),
  fix: flag(false, "Whether activation makes the directory readable by others."),
});

export const commandRule = z.strictObject({
  never: line("Regular expression that the daemon's command must not match, ignoring case."),
  message: line("The cause in words, if the command matches."),
  fix: line("How to fix the cause."),
});

export const rows = z.array(row).max(ROWS_MAX);
export const trees = z.array(tree).max(ROWS_MAX);

/** A row of `portico doctor` from a deployment. */
export type DeploymentRow = OutputOf<typeof row>;
/** A served directory of a deployment: one of `trees`. */
export type Tree = OutputOf<typeof tree>;

/** The parts of a deployment that have the code of a row. */
interface Coded {
  readonly rows?: readonly DeploymentRow[] | undefined;
  readonly trees?: readonly Pick<Tree, "code">[] | undefined;
  readonly expect?: readonly ExpectedRow[] | undefined;
  readonly settings?:
    | { readonly files: readonly { readonly items: readonly { readonly code?: string | undefined }[] }[] }
    | undefined;
  readonly services: {
    readonly daemons?:
      | readonly {
          readonly code?: string | undefined;
          readonly command?: { readonly never: string } | undefined;
        }[]
      | undefined;
  };
}

/** Every code is that of one row, and rows of the deployment are not those that every host has. */
export function rowProblems(deployment: Coded): Problem[] {
  const { rows: own = [], trees: served = [], expect = [], settings, services } = deployment;
  const names = own.map(({ code }) => code);
  const every: readonly string[] = ENGINE_ROWS;
  const daemons = services.daemons ?? [];
  const unknown = (at: string, received: string | undefined, others: readonly string[] = []): Problem[] => {
    const known = [...names, ...others];
    if (received === undefined || known.includes(received)) return [];
    const more = { received, allowed: known.join(", ") || "no row is defined" };
    return [problem("config.unknown-reference", at, "is not the code of one of `rows`", more)];
  };
  return [
    ...names.flatMap((received, i) =>
      names.indexOf(received) === i && !every.includes(received)
        ? []
        : [problem("config.duplicate-name", `rows[${i}].code`, TAKEN, { received, fix: ANOTHER })],
    ),
    ...served.flatMap(({ code }, i) => unknown(`trees[${i}].code`, code)),
    ...(settings?.files ?? []).flatMap(({ items }, i) =>
      items.flatMap(({ code }, j) => unknown(`settings.files[${i}].items[${j}].code`, code, [SETTINGS])),
    ),
    ...daemons.flatMap(({ code }, i) => unknown(`services.daemons[${i}].code`, code)),
    ...expect.flatMap(({ causes = [] }, i) =>
      causes.flatMap(({ code, because = [] }, j) => [
        ...unknown(`expect[${i}].causes[${j}].code`, code, [SERVER_NAME]),
        ...because.flatMap((one, k) => unknown(`expect[${i}].causes[${j}].because[${k}]`, one, every)),
      ]),
    ),
    ...daemons.flatMap(({ command }, i) => {
      if (command === undefined || isRegExp(command.never)) return [];
      const more = { received: command.never, fix: "Correct the regular expression." };
      const at = `services.daemons[${i}].command.never`;
      return [problem("config.bad-text", at, "is not a regular expression", more)];
    }),
  ];
}

const TAKEN = "is already the code of another row";
const ANOTHER =
  "Use a different code for each row, and no code of a row that `portico doctor` shows on every host.";

function isRegExp(text: string): boolean {
  try {
    return new RegExp(text) instanceof RegExp;
  } catch {
    return false;
  }
}
