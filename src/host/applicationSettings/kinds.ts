import type { SettingsFile, StoredItem } from "../../model/index.js";
import type { ItemChange, Reverted, SettingsEdit } from "./edit.js";
import { editEnv } from "./envFile.js";
import { revertEnv } from "./envRevert.js";
import { editIni } from "./iniFile.js";
import { revertIni } from "./iniRevert.js";
import { editPython } from "./pythonFile.js";
import { revertPython } from "./pythonRevert.js";
import { secretEnvLines, secretIniLines, secretPythonLines } from "./secretLines.js";

/** What depends on the kind of a settings file. */
interface SettingsKind<F extends SettingsFile> {
  /** In messages. */
  readonly words: string;
  /** How the names of such files end, and of no other kind. */
  readonly suffix: string;
  /**
   * Works out what has to change.
   *
   * @param ours elements of a list that an earlier edit has added
   * @param elsewhere values of names that other files set for the application
   */
  edit(
    text: string,
    items: F["items"],
    path: string,
    ours: (name: string) => readonly string[],
    elsewhere: ReadonlyMap<string, StoredItem>,
  ): SettingsEdit;
  /** Undoes a change. */
  revert(text: string, change: ItemChange): Reverted;
  /** Numbers of the lines that may contain a secret. */
  secretLines(text: string): ReadonlySet<number>;
}

const KINDS: { readonly [F in SettingsFile as F["kind"]]: SettingsKind<F> } = {
  ini: {
    words: "an INI file",
    suffix: ".ini",
    edit: editIni,
    revert: revertIni,
    secretLines: secretIniLines,
  },
  python: {
    words: "a Python module",
    suffix: ".py",
    edit: editPython,
    revert: revertPython,
    secretLines: secretPythonLines,
  },
  env: {
    words: "a file of environment variables",
    suffix: ".env",
    edit: editEnv,
    revert: revertEnv,
    secretLines: secretEnvLines,
  },
};

export type Kind = SettingsFile["kind"];
export const KIND_NAMES = Object.keys(KINDS) as readonly Kind[];
export const kindOf = (kind: Kind): SettingsKind<SettingsFile> => KINDS[kind];
