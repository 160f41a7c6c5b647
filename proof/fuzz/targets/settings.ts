import { editEnv } from "../../../src/host/applicationSettings/envFile.js";
import { editIni } from "../../../src/host/applicationSettings/iniFile.js";
import type { SettingsEdit } from "../../../src/host/applicationSettings/edit.js";
import { applySplices } from "../../../src/host/applicationSettings/textEdit.js";
import { editPython } from "../../../src/host/applicationSettings/pythonFile.js";
import type { EnvItem, IniItem, PythonItem } from "../../../src/model/index.js";
import { applicationSettingsFiles, applicationSettingsValues } from "../../../src/applications/index.js";
import { READERS } from "../../applicationSettings/envReaders.js";
import { SECRET, WORDS } from "../cases/words.js";
import { demand, type FuzzTarget } from "../target.js";

const [daemon, web, server] = applicationSettingsFiles(
  applicationSettingsValues({
    origins: [{ scheme: "https", host: "sync.example", port: 443 }],
    pathPrefix: "sync",
    enableSettingsViaWeb: false,
    fileServerHost: "127.0.0.1",
    fileServerPort: 8082,
  }),
  { networkDaemon: "/a", webApplication: "/b", fileServer: "/c" },
);

/** What holds of every edit: it is refused as a whole, or done once and for all; nothing else changes, no secret shows. */
function checkEdit(text: string, edit: (text: string) => SettingsEdit): string | undefined {
  const first = edit(text);
  const { findings, problems, splices, notes } = first;
  // The value that an item of ours has is not secret, whatever it is.
  const words = JSON.stringify({ problems, notes, added: splices.map((splice) => splice.text) });
  demand(!words.includes(SECRET), "the secret shows", words);
  for (const { code, message, fix } of problems)
    demand(code !== undefined && message !== "" && fix !== "", "a mute problem");
  if (problems.length > 0) return undefined;
  for (const { from, to } of splices)
    demand(from <= to && to <= text.length, "a splice outside of the text", splices);
  const ordered = splices.toSorted((a, b) => a.from - b.from);
  for (const [i, { from }] of ordered.entries())
    demand(i === 0 || ordered[i - 1]!.to <= from, "splices overlap", splices);
  demand(!findings.some(({ state }) => state === "refused"), "refused without a problem", findings);
  const edited = applySplices(text, splices);
  const again = edit(edited);
  demand(again.problems.length === 0, "what was edited is refused", { edited, problems: again.problems });
  demand(again.splices.length === 0, "edited again", { edited, splices: again.splices });
  demand(
    again.findings.every(({ state }) => state === "same"),
    "not as wanted",
    { edited, findings: again.findings },
  );
  return edited;
}

const python: FuzzTarget = {
  name: "settings-python",
  dictionary: WORDS.python,
  run(input) {
    const text = input.toString("utf8");
    const edited = checkEdit(text, (given) =>
      editPython(given, web!.items as readonly PythonItem[], "settings.py"),
    );
    if (edited === undefined) return;
    // What stands by itself on a line is not part of anything that may be replaced.
    const secret = (given: string): string[] =>
      given.split(/\r\n|\n|\r/).filter((line) => line === `SECRET_KEY = "${SECRET}"`);
    demand(secret(edited).join("\n") === secret(text).join("\n"), "the secret key's line changed", {
      text,
      edited,
    });
  },
};

const ini: FuzzTarget = {
  name: "settings-ini",
  dictionary: WORDS.ini,
  run(input) {
    const text = input.toString("utf8");
    for (const { items } of [daemon!, server!])
      checkEdit(text, (given) => editIni(given, items as readonly IniItem[], "app.conf"));
  },
};

const VARIABLES: readonly EnvItem[] = [
  { name: "HOST", value: "sync.example" },
  { name: "TLS", value: true },
];

const env: FuzzTarget = {
  name: "settings-env",
  dictionary: WORDS.env,
  run(input) {
    const text = input.toString("utf8");
    const edited = checkEdit(text, (given) => editEnv(given, VARIABLES, ".env"));
    if (edited === undefined) return;
    const after = VARIABLES.map(({ name, value }) => [name, String(value)]);
    for (const [reader, read] of Object.entries(READERS)) {
      const was = read(text);
      const is = was && read(edited);
      // `docker run` takes quotes as a part of the value.
      const plain = after.map(([name]) => [name, is?.[name!]?.replace(/^(["'])(.*)\1$/, "$2")]);
      const others = (all: object) =>
        Object.entries(all).filter(([name]) => !after.some(([own]) => own === name));
      const same = is && JSON.stringify([plain, others(is)]) === JSON.stringify([after, others(was)]);
      demand(was === undefined || same === true, "read differently", { reader, text, edited });
    }
  },
};

export const SETTINGS_TARGETS: readonly FuzzTarget[] = [python, ini, env];
