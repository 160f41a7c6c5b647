import path from "node:path";
import { type Command, InvalidArgumentError } from "commander";
import type { ExpectedResponse } from "../diagnosis/expectedResponses.js";
import type { CheckedResponse } from "../diagnosis/liveCheck.js";
import { judgeOverrides, urlsOf } from "../diagnosis/storedSettings.js";
import { type Deployment, DEPLOYMENT_FILE, parseDeploymentText, type ProxyConfig } from "../model/index.js";
import { readText } from "../runtime/load/files.js";
import { type DatabaseAccess, readOverrides } from "../applicationSettings/index.js";
import type { Source } from "./document.js";

/** Environment variable of the database's password: arguments can be seen by every user of the host. */
export const PASSWORD_VARIABLE = "PORTICO_DATABASE_PASSWORD";

export interface DatabaseFlags {
  readonly database?: Pick<DatabaseAccess, "user" | "host" | "port" | "name">;
  readonly databaseOptionFile?: string;
  readonly timeoutMs: number;
}

/** Options that say where the application's database is. */
export function addDatabaseOptions(command: Command): Command {
  return command
    .option(
      "--database <USER@HOST:PORT/NAME>",
      "the application's database (default: the deployment's)",
      parseDatabase,
    )
    .option(
      "--database-option-file <FILE>",
      `option file of the database client with the password (default: the variable ${PASSWORD_VARIABLE})`,
    );
}

export const DATABASE_FLAGS = [
  { key: "database", flag: "--database" },
  { key: "databaseOptionFile", flag: "--database-option-file" },
];

function parseDatabase(text: string): NonNullable<DatabaseFlags["database"]> {
  const match = /^([^@\s]+)@(\[[^\]\s]+\]|[^@:/\s[\]]+)(?::(\d{1,5}))?\/([^/\s]+)$/.exec(text);
  if (match === null)
    throw new InvalidArgumentError("Give USER@HOST:PORT/NAME, as sync@127.0.0.1:3306/sync_web.");
  const [, user, host, port = "3306", name] = match;
  return { user: user!, host: host!.replace(/[[\]]/g, ""), port: Number(port), name: name! };
}

/** What the database contains for SERVICE_URL and FILE_SERVER_ROOT (service 2.2), or why it was not queried. */
export type StoredSettings =
  | { readonly looked: true; readonly rows: readonly CheckedResponse[] }
  | { readonly looked: false; readonly why: string };

/** Queries the application's database, if it is known and there are credentials. */
export async function checkStoredSettings(
  source: Source,
  config: ProxyConfig,
  rows: readonly ExpectedResponse[],
  flags: DatabaseFlags,
): Promise<StoredSettings> {
  const deployment = await deploymentOf(source);
  const database = flags.database ?? deployment?.database;
  if (database === undefined)
    return { looked: false, why: "no database is named by --database or the deployment" };
  const password = process.env[PASSWORD_VARIABLE];
  const credentials =
    flags.databaseOptionFile === undefined
      ? password === undefined
        ? undefined
        : { password }
      : { optionFile: path.resolve(flags.databaseOptionFile) };
  if (credentials === undefined) {
    return { looked: false, why: `no credentials: set ${PASSWORD_VARIABLE} or give --database-option-file` };
  }
  const access: DatabaseAccess = { ...database, ...credentials, timeoutMs: flags.timeoutMs };
  const overrides = await readOverrides(access);
  if (!overrides.looked) return overrides;
  const values = deployment?.settings?.values;
  const wanted =
    values === undefined
      ? urlsOf(config, rows)
      : { SERVICE_URL: values.serviceUrl, FILE_SERVER_ROOT: values.fileServerRoot };
  return { looked: true, rows: judgeOverrides(overrides, wanted, access) };
}

/** The host's deployment document, if there is one that can be read: the check works without it. */
async function deploymentOf({ root }: Source): Promise<Deployment | undefined> {
  const file = path.join(root ?? "/", DEPLOYMENT_FILE);
  const read = await readText(file, file);
  if ("problem" in read) return undefined;
  const parsed = parseDeploymentText(read.text);
  return parsed.ok ? parsed.value : undefined;
}
