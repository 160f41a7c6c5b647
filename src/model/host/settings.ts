import * as z from "zod";
import type { OutputOf } from "../schema/inferred.js";
import { filePath, flag, name, text } from "../schema/fields.js";
import { type Problem, problem } from "../text/problem.js";

/**
 * Settings of an application, as a deployment lists them: files of a kind that an editor knows, and the items that each of
 * them should have. The host edits and compares them without knowing any application.
 */

/** Bounds that also limit the size of a query for stored items. */
const FILES_MAX = 10;
const ITEMS_MAX = 100;

/** The readers of these files differ in quoting, expansion and comments. */
const settingText = (description: string) =>
  text("settings.bad-value", "visible ASCII without spaces, quotes, `\\`, `%`, `#` and `;`", {
    pattern: "^[!$&(-:<-\\[\\]-~]+$",
    lengthMax: 2048,
  }).describe(description);

/** Docker Compose expands `$` as well. */
const envText = text(
  "settings.bad-value",
  "visible ASCII without spaces, quotes, `\\`, `$`, `%`, `#` and `;`",
  { pattern: "^[!&(-:<-\\[\\]-~]+$", lengthMax: 2048 },
);

const KEYWORDS =
  "False|None|True|and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|" +
  "import|in|is|lambda|nonlocal|not|or|pass|raise|return|try|while|with|yield";

const pythonName = text(
  "config.bad-name",
  "a Python name of up to 64 ASCII letters, digits and `_` that is not a keyword, `SECRET_KEY` or `DATABASES`",
  {
    pattern: "^[A-Za-z_][A-Za-z0-9_]{0,63}$",
    never: `^(?:${KEYWORDS}|SECRET_KEY|DATABASES)$`,
  },
);

/** The items of a deployment are not secret: they are in Terraform's state and in output for users. */
const envName = text(
  "config.bad-name",
  "a name of up to 64 ASCII letters, digits and `_` that does not begin with a digit and does not end in a word for " +
    "a secret: `KEY`, `SECRET`, `TOKEN`, `PASS`, `PASSWORD`, `PASSWD`, `CREDENTIALS`",
  {
    pattern: "^[A-Za-z_][A-Za-z0-9_]{0,63}$",
    never: "(?:^|_)(?:KEY|SECRET|TOKEN|PASS|PASSWORD|PASSWD|CREDENTIALS)$",
  },
);

const section = text(
  "config.bad-name",
  "a section name of up to 64 letters, digits, `-`, `_` and `.` that begins with a letter or digit and is not `DEFAULT`, " +
    "which programs read in different ways",
  { pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", never: "^DEFAULT$" },
);

const ofItem = {
  code: name(
    "Row of `portico doctor` that fails if the item differs from its listed value: the `code` of one of " +
      "`rows`. Default: `settings`.",
  ).optional(),
  stored: z
    .boolean()
    .describe(
      "Whether the application's web interface can store another value in its database, which overrides the " +
        "file; `database` names the database. Only for texts and numbers.",
    )
    .optional(),
};

export const iniItem = z.strictObject({
  section: section.describe("Section, without brackets."),
  name: name("Key, as written in the file."),
  value: z.union([z.int().min(0), settingText("A text.")]).describe("A text or a whole number."),
  ...ofItem,
});

export const pythonItem = z.strictObject({
  name: pythonName.describe("Name of the variable in the module."),
  value: z
    .union([z.boolean(), z.array(settingText("An element.")).max(ITEMS_MAX), settingText("A text.")])
    .describe("A text, a boolean, or a list of texts; the file's list may have further elements."),
  ...ofItem,
});

export const envItem = z.strictObject({
  name: envName.describe("Name of the variable; not for secrets."),
  value: z
    .union([z.boolean(), z.int().min(0), envText.describe("A text.")])
    .describe("A text, a whole number, or a boolean: `true` or `false`."),
  ...ofItem,
});

const ofFile = {
  name: name("Name for `restartOn` of daemons and `portico settings --file`."),
  path: filePath("Path of the file on the host."),
  site: name("Site of the file. Default: `application`, the site with the host's names.").optional(),
};

export const iniFile = z.strictObject({
  ...ofFile,
  kind: z.literal("ini").describe("Selects the editor of INI files: sections with `key = value`."),
  items: z.array(iniItem).min(1).max(ITEMS_MAX).describe("From 1 to 100 items, each once."),
});

export const pythonFile = z.strictObject({
  ...ofFile,
  kind: z.literal("python").describe("Selects the editor of Python modules: `NAME = value`."),
  items: z
    .array(pythonItem)
    .min(1)
    .max(ITEMS_MAX)
    .describe("From 1 to 100 variables of the module, each once."),
});

export const envFile = z.strictObject({
  ...ofFile,
  kind: z
    .literal("env")
    .describe("Selects the editor of environment variables, `NAME=value`, as Docker Compose reads them."),
  items: z.array(envItem).min(1).max(ITEMS_MAX).describe("From 1 to 100 variables, each once."),
});

const settingsFile = z
  .discriminatedUnion("kind", [iniFile, pythonFile, envFile])
  .describe("A file and its items.");

export const settingsFields = z
  .strictObject({
    files: z
      .array(settingsFile)
      .min(1)
      .max(FILES_MAX)
      .describe("From 1 to 10 files of the application. Items that are not listed stay unchanged."),
    apply: flag(
      false,
      "Whether activation writes the settings into the files; otherwise differences are only reported.",
    ),
  })
  .describe(
    "The application's settings, their files, and whether activation edits them. Without this field, the settings are " +
      "neither compared nor edited.",
  );

export type DeploymentSettings = OutputOf<typeof settingsFields>;
/** A settings file of the application, with the expected items. */
export type SettingsFile = OutputOf<typeof settingsFile>;
export type IniItem = Extract<SettingsFile, { kind: "ini" }>["items"][number];
export type PythonItem = Extract<SettingsFile, { kind: "python" }>["items"][number];
export type EnvItem = Extract<SettingsFile, { kind: "env" }>["items"][number];

export type SettingsItem = IniItem | PythonItem | EnvItem;

/** The name of an item in messages: `SECTION.NAME` in an INI file, otherwise `NAME`. */
export const itemLabel = ({ section: of, name: own }: { readonly section?: string; readonly name: string }) =>
  of === undefined ? own : `${of}.${own}`;

/** An item that a value in the application's database overrides: its wanted value, and the row that reports it. */
export interface StoredItem {
  readonly wanted: string;
  readonly code?: string;
}

/** The overridden items by their names. */
export function storedItems({ files }: Pick<DeploymentSettings, "files">): ReadonlyMap<string, StoredItem> {
  const items = files.flatMap((file): readonly SettingsItem[] => file.items);
  return new Map(
    items
      .filter(({ stored }) => stored === true)
      .map(({ name: own, value, code }) => [own, { wanted: String(value), code }]),
  );
}

/** Rules that span fields of the settings. */
export function settingsCrossProblems(
  { files, apply }: DeploymentSettings,
  isDeployed: (path: string) => boolean,
): Problem[] {
  const named = files.map(({ name: key }, i) => ({ key, received: key, at: `files[${i}]` }));
  const items = files.flatMap(({ kind, path, items: own }, i) =>
    own.map((item, j) => {
      // Some readers of an INI file do not tell capitals from small letters.
      const inFile = kind === "ini" ? itemLabel(item).toLowerCase() : item.name;
      return { ...item, key: `${path} ${inFile}`, received: item.name, at: `files[${i}].items[${j}]` };
    }),
  );
  const stored = items.filter((item) => item.stored === true).map((item) => ({ ...item, key: item.name }));
  const repeated = [
    ...twice(named, "is the name of another file", "Use a different name for each file."),
    ...twice(items, "is the name of another item of the file", "List each item of a file once."),
    ...twice(stored, "is the name of another item with `stored`", "Set `stored` for one item of each name."),
  ];
  const untold = stored.flatMap(({ at, value: received }) => {
    if (typeof received === "string" || typeof received === "number") return [];
    const message = "is set for a value that is neither a text nor a number";
    const more = { received, fix: "Remove `stored`: only texts and numbers are compared." };
    return [problem("settings.bad-value", `settings.${at}.stored`, message, more)];
  });
  const deployed = files.flatMap(({ path: received }, i) => {
    if (!apply || !isDeployed(received)) return [];
    const fix = "Either deploy the whole file or edit it in place, not both.";
    const message = "is also the path of a deployed file";
    return [problem("config.duplicate-name", `settings.files[${i}].path`, message, { received, fix })];
  });
  return [...repeated, ...untold, ...deployed];
}

interface Keyed {
  readonly key: string;
  readonly at: string;
  readonly received: string;
}

function twice(all: readonly Keyed[], message: string, fix: string): Problem[] {
  const keys = all.map(({ key }) => key);
  return all
    .filter(({ key }, i) => keys.indexOf(key) !== i)
    .map(({ at, received }) =>
      problem("config.duplicate-name", `settings.${at}.name`, message, { received, fix }),
    );
}
