import * as z from "zod";
import type { InputOf, OutputOf } from "./schema/inferred.js";
import { count, filePath, flag, line, name, port, serverName, text } from "./schema/fields.js";
import { EXPECTED_MAX, expectedRow } from "./host/expect.js";
import { fromJson, parseDocument } from "./config/parse.js";
import { lateValue } from "./lateValues.js";
import { network } from "./host/network.js";
import { type Problem, problem, type Result } from "./text/problem.js";
import { commandRule, rowProblems, rows, TOLD_BY, trees } from "./host/rows.js";
import { settingsCrossProblems, settingsFields } from "./host/settings.js";

/**
 * The deployment document, version 1: what one deployment puts on a host, what else is there, and how the host should
 * respond afterwards. The constructs write it, activation and diagnosis read it. It holds no secret that is not in a file
 * which every user of the host can read.
 */

/** The only version of the document that this release reads. */
export const DEPLOYMENT_VERSION = 1;

/** The path at which a host keeps the document of its deployment. */
export const DEPLOYMENT_FILE = "/etc/portico/deployment.json";

/** Directory of activation: uploads, the last good state, the journal. Only root can enter it. */
export const DEPLOYMENT_STORE = "/var/lib/portico/deployment";

/** Directory for ACME: accounts, keys, certificates. Only the proxy's user can enter it. */
export const CERTIFICATE_STORE = "/var/lib/portico-certificates";

/**
 * Each deployment has a directory in it for its uploads: files named by their SHA-256 and the id of the upload, including
 * the deployment document.
 */
export const INCOMING_DIRECTORY = "/var/lib/portico/incoming";

const sha256 = (description: string) =>
  text("config.bad-text", "a SHA-256 in 64 lower-case hexadecimal digits", {
    pattern: "^[0-9a-f]{64}$",
  }).describe(description);

const unitName = (suffix: "service" | "socket", description: string) =>
  text("config.bad-name", `the name of a systemd unit that ends in .${suffix}`, {
    pattern: `^[A-Za-z0-9:_.@\\\\-]{1,240}\\.${suffix}$`,
  }).describe(description);

const service = (description: string) => unitName("service", description);

/**
 * The role of a file determines the reaction to a change:
 *
 * | role                  | on change                                                        |
 * | --------------------- | ---------------------------------------------------------------- |
 * | `config` `tls` `page` | the proxy reloads                                                |
 * | `runtime` `node`      | the proxy upgrades                                               |
 * | `unit`                | daemon-reload; the unit restarts (a drop-in: the unit it is for) |
 * | `network`             | networkd reloads                                                 |
 * | `firewall`            | `services.firewall` reloads                                      |
 * | `keepalived`          | `services.keepalived` reloads                                    |
 * | `fail2ban`            | `fail2ban.service` reloads                                       |
 * | `crowdsec`            | `crowdsec.service` reloads                                       |
 * | `settings` `other`    | nothing                                                          |
 */
export const FILE_ROLES = [
  "config",
  "tls",
  "page",
  "runtime",
  "node",
  "unit",
  "network",
  "firewall",
  "keepalived",
  "fail2ban",
  "crowdsec",
  "settings",
  "other",
] as const;

/** Programs of the host's distribution that read files of a deployment, by the role of the files. */
export const READERS_OF_HOST = { fail2ban: "fail2ban.service", crowdsec: "crowdsec.service" } as const;

/** The unit of the program of the host that reads a file; undefined for all other files. */
export const readerOnHost = (role: FileRole): string | undefined =>
  Object.entries(READERS_OF_HOST).find(([name]) => name === role)?.[1];

export const FILE_MODES = ["0600", "0640", "0644", "0755"] as const;

export const deployedFile = z.strictObject({
  path: filePath("Path of the file on the host."),
  mode: z.enum(FILE_MODES).describe("Permissions; owner and group are root."),
  sha256: sha256("SHA-256 of the file's content."),
  role: z.enum(FILE_ROLES).describe("Role of the file; decides which services a change affects."),
});

export const daemon = z.strictObject({
  unit: service("Full name of the unit."),
  restartOn: z
    .array(name("A file of `settings.files`."))
    .describe(
      "Names, from `settings.files`, of files that the daemon reads: the daemon stops before their edits and " +
        "starts afterwards.",
    )
    .optional(),
  domainChange: z
    .literal("restart")
    .describe(
      "If only the host in the application's URLs changes, the daemon keeps running and restarts after the " +
        "edits. Without this field, the daemon stops before the edits.",
    )
    .optional(),
  code: name(TOLD_BY).optional(),
  command: commandRule
    .describe("Commands that the daemon must not have; `portico doctor` checks the unit.")
    .optional(),
});

export const services = z.strictObject({
  proxy: z
    .strictObject({
      service: service("Service unit of the proxy."),
      socket: unitName("socket", "Socket unit of the proxy."),
    })
    .describe("Units of the proxy."),
  daemons: z
    .array(daemon)
    .describe(
      "The application's daemons, which stop and start when their settings change. They start in this order " +
        "and stop in reverse.",
    )
    .optional(),
  firewall: service(
    "Full name of the unit that loads the firewall's rule set, if the deployment has a rule set.",
  ).optional(),
  keepalived: service("Unit of keepalived, if the host is one of a pair.").optional(),
});

export const database = z
  .strictObject({
    host: line("Name or address of the database server, without a port."),
    port: port("TCP port."),
    name: line("Name of the database."),
    user: line("User that may read the database. The password is requested for each check and never stored."),
  })
  .describe(
    "The application's database, for checks of the settings stored in it: settings that were changed in the web " +
      "interface take priority over the files. Without this field, the stored settings are not checked.",
  );

export const probe = z
  .strictObject({
    enabled: flag(true, "Whether unexpected responses make the activation fail and roll back."),
    imagePath: line(
      'Path of an image below the path of expected responses with `file: "image"`. Without this field, the ' +
        "directory of the route is searched for an image.",
    ).optional(),
    timeoutSeconds: count(60, 1, 3_600, "seconds", "How long the responses may take to become as expected."),
  })
  .prefault({})
  .describe("How the expected responses are checked after an activation.");

export const replay = z
  .strictObject({
    accessLog: filePath(
      "Path of the access log. Default: the main access log of the active config.",
      "/var/log/portico/access.log",
    ).optional(),
    logBytesMax: count(
      268_435_456,
      1_024,
      1_099_511_627_776,
      "bytes",
      "How much of the end of the log is replayed. The default has about a million requests and takes some ten " +
        "seconds.",
    ),
    host: serverName(
      "Host of the requests in a `combined` log, which does not contain the host. Default: the host of the " +
        "only application.",
    ).optional(),
    changesMax: count(
      0,
      0,
      Number.MAX_SAFE_INTEGER,
      "requests",
      "How many requests the new config may treat differently. With more, the activation is refused " +
        "(`activation.replay-changes`), examples are printed, and nothing is changed.",
    ),
  })
  .describe(
    "Runs the requests of an access log through the active and the new config before activation changes " +
      "anything; for a change that should not affect requests. The activation is refused if requests would be " +
      "treated differently. Without this field, no requests are replayed.",
  );

export const deploymentSchema = z.strictObject({
  version: z.literal(DEPLOYMENT_VERSION).describe("Version of the document: 1."),
  name: name("Name of the deployment in messages.").optional(),
  config: filePath("The proxy config on the host; one of the files."),
  files: z.array(deployedFile).min(1).describe("Every file of the deployment, sorted by path."),
  services: services.describe("systemd units of proxy and application."),
  settings: settingsFields.optional(),
  trees: trees
    .describe(
      "Directories that the proxy serves; `portico doctor` checks that others can read every file in them and " +
        "enter every directory on the way. List a directory after the directories that contain it.",
    )
    .optional(),
  rows: rows
    .describe(
      "Rows of `portico doctor` about the application, in the order of the report. List a row before the rows " +
        "that it explains.",
    )
    .optional(),
  database: database.optional(),
  network: network.optional(),
  lateValues: z
    .array(lateValue)
    .describe("Values that only Terraform knew; activation refuses those that do not meet their rule.")
    .optional(),
  expect: z
    .array(expectedRow)
    .max(EXPECTED_MAX)
    .optional()
    .describe("Expected responses. Default: the responses that follow from the actions of the config."),
  probe,
  replay: replay.optional(),
  requireCertificate: flag(
    false,
    "Whether an activation fails and rolls back unless every ACME certificate is issued within three " +
      "minutes. With `false`, the activation does not wait: a row shows each missing certificate and the " +
      "reason, and the proxy uses a temporary certificate until then. A host of a pair without the virtual " +
      "address waits ten seconds and does not fail: it gets its certificates from the other host.",
  ),
});

/** A valid deployment with every default filled in, frozen. */
export type Deployment = OutputOf<typeof deploymentSchema>;
/** A deployment as it may be written: defaults left out. */
export type DeploymentInput = InputOf<typeof deploymentSchema>;
export type DeployedFile = Deployment["files"][number];
/** The kind of a file, which decides what the activation does when the file changes. */
export type FileRole = (typeof FILE_ROLES)[number];
/** Permissions of a file, writable by the owner: `0600` for secrets, `0755` for programs, `0644` for other files. */
export type FileMode = (typeof FILE_MODES)[number];
export type DeploymentServices = Deployment["services"];

/** Unknown input → frozen deployment with defaults, or every problem at once. Never throws. */
export function parseDeployment(input: unknown): Result<Deployment> {
  return parseDocument(input, { version: DEPLOYMENT_VERSION, schema: deploymentSchema, crossCheck });
}

/** Does the same as {@link parseDeployment}, from JSON text; a syntax error names line and column. */
export function parseDeploymentText(text: string): Result<Deployment> {
  return fromJson(text, parseDeployment);
}

const ANOTHER_RESPONSE = "is the name of another expected response";

/** Rules that span fields. Each field alone is valid when this runs. */
function crossCheck(deployment: Deployment): Problem[] {
  const { config, files, services, settings: edited, expect = [] } = deployment;
  const found = files.flatMap(({ path }, i) => pathProblems(path, `files[${i}].path`, files[i - 1]?.path));
  found.push(...rowProblems(deployment));
  const names = expect.map((row) => row.name);
  for (const [i, received] of names.entries()) {
    if (names.indexOf(received) === i) continue;
    const fix = "Use a different name for each expected response.";
    found.push(problem("config.duplicate-name", `expect[${i}].name`, ANOTHER_RESPONSE, { received, fix }));
  }
  const configFile = files.find((file) => file.path === config);
  if (configFile?.role !== "config") {
    const configs = files.flatMap((file) => (file.role === "config" ? [file.path] : []));
    const allowed = configs.join(", ") || "no file has the role `config`";
    const message = "is not one of the files with the role `config`";
    found.push(problem("config.unknown-reference", "config", message, { received: config, allowed }));
  }
  if (edited === undefined) return found;
  const edits = edited.files.map(({ name: own }) => own);
  for (const [i, { restartOn = [] }] of (services.daemons ?? []).entries()) {
    const received = restartOn.find((file) => !edits.includes(file));
    if (received === undefined) continue;
    const more = { received, allowed: edits.join(", ") };
    const message = "is not the name of a file in `settings.files`";
    found.push(problem("config.unknown-reference", `services.daemons[${i}].restartOn`, message, more));
  }
  const deployed = new Set(files.map((file) => file.path));
  return [...found, ...settingsCrossProblems(edited, (path) => deployed.has(path))];
}

function pathProblems(path: string, at: string, previous: string | undefined): Problem[] {
  const own = [DEPLOYMENT_FILE, DEPLOYMENT_STORE].find((p) => path === p || path.startsWith(`${p}/`));
  if (own !== undefined) {
    const fix = "Choose another path: activation keeps its own files there.";
    const allowed = `a path other than ${DEPLOYMENT_FILE}, outside ${DEPLOYMENT_STORE}`;
    const message = "is reserved for activation";
    return [problem("config.bad-file-path", at, message, { received: path, allowed, fix })];
  }
  if (path.endsWith("/")) {
    const more = { received: path, allowed: "the path of a file", fix: "Remove the `/` at the end." };
    return [problem("config.bad-file-path", at, "is the path of a directory", more)];
  }
  if (previous === undefined || previous < path) return [];
  const message = previous === path ? "is listed twice" : `is listed after ${previous}`;
  const fix = "List every file once, sorted by path.";
  return [problem("config.duplicate-name", at, message, { received: path, fix })];
}

/**
 * Which deployment a host has. Two with the same files are two deployments, and one whose files, names and addresses all
 * change is still the same one.
 */
export interface DeploymentIdentity {
  /** The id of the resource that stands for the deployment: made once, and kept in Terraform's state. */
  readonly id: string;
  /** Path of the construct, for messages only. */
  readonly construct: string;
}

/** The path at which a host keeps the identity of its deployment. */
export const IDENTITY_FILE = `${DEPLOYMENT_STORE}/state.json`;

/** The problem that one deployment reports on the host of another. */
export function otherDeployment(own: Pick<DeploymentIdentity, "construct">, there: string): Problem {
  const message = `this host already has another deployment, that of ${there}`;
  return problem("activation.other-deployment", IDENTITY_FILE, message, { received: own.construct });
}
