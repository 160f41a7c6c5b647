import path from "node:path";
import { type Command, InvalidArgumentError } from "commander";
import type { CheckedResponse } from "../../host/diagnosis/expected/liveCheck.js";
import { judgeOverrides } from "../../host/diagnosis/storedSettings.js";
import { type Deployment, storedItems } from "../../model/index.js";
import { type DatabaseAccess, readOverrides } from "../../host/applicationSettings/index.js";

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
    throw new InvalidArgumentError("Give USER@HOST:PORT/NAME, such as sync@127.0.0.1:3306/sync_web.");
  const [, user, host, port = "3306", name] = match;
  return { user: user!, host: host!.replace(/[[\]]/g, ""), port: Number(port), name: name! };
}

/** The values in the database for items of the settings (service 2.2), or why it was not queried. */
export type StoredSettings =
  | { readonly looked: true; readonly rows: readonly CheckedResponse[] }
  | { readonly looked: false; readonly why: string };

/** Queries the application's database, if it is known and there are credentials. */
export async function checkStoredSettings(
  deployment: Deployment | undefined,
  flags: DatabaseFlags,
): Promise<StoredSettings> {
  const database = flags.database ?? deployment?.database;
  if (database === undefined)
    return { looked: false, why: "neither --database nor the deployment names a database" };
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
  const settings = deployment?.settings;
  if (settings === undefined)
    return { looked: false, why: "the deployment has no application settings to compare with" };
  const items = storedItems(settings);
  const overrides = await readOverrides(access, [...items.keys()]);
  if (!overrides.looked) return overrides;
  return { looked: true, rows: judgeOverrides(overrides, items, access) };
}
