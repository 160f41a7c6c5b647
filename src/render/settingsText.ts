import type { EnvItem, IniItem, PythonItem, SettingsFile } from "../model/index.js";

/** The lines that a settings file should have, for users who copy them by hand. */
export function renderSettings(file: Pick<SettingsFile, "kind" | "items">): string {
  return (TEXTS[file.kind] as (items: SettingsFile["items"]) => string)(file.items);
}

const TEXTS: {
  readonly [F in SettingsFile as F["kind"]]: (items: F["items"]) => string;
} = { ini: iniText, python: pythonText, env: envText };

function iniText(items: readonly IniItem[]): string {
  const sections = [...new Set(items.map(({ section }) => section))];
  const linesOf = (of: string): string =>
    items.map(({ section, name, value }) => (section === of ? `${name} = ${value}\n` : "")).join("");
  return sections.map((section) => `[${section}]\n${linesOf(section)}`).join("\n");
}

function pythonText(items: readonly PythonItem[]): string {
  const place = "# Between the secret-key item and the DATABASES item.\n";
  return place + items.map(({ name, value }) => `${name} = ${pythonLiteral(value)}\n`).join("");
}

function envText(items: readonly EnvItem[]): string {
  return items.map((item) => `${envLine(item)}\n`).join("");
}

/** The line that every reader of such files understands. */
export const envLine = ({ name, value }: Pick<EnvItem, "name" | "value">): string => `${name}=${value}`;

/** A Python literal of the same value. */
export function pythonLiteral(value: string | boolean | readonly string[]): string {
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "string") return `[${value.map(pythonLiteral).join(", ")}]`;
  const escaped = value
    .replaceAll("\\", "\\\\")
    .replaceAll("'", "\\'")
    .replace(/[\u0000-\u001f\u007f]/g, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, "0")}`);
  return `'${escaped}'`;
}
