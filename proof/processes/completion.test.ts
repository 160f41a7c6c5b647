import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sharedBundle } from "../../testkit/sharedBundle.js";
import { testWith } from "../../testkit/testWith.js";

/** Completions that the bundle prints, in the shells that load them. */

let bundle: string;
let folder: string;
beforeAll(async () => {
  bundle = await sharedBundle();
  folder = mkdtempSync(join(tmpdir(), "portico-completion-"));
  mkdirSync(join(folder, "host"));
  writeFileSync(join(folder, "hosts.json"), "");
  for (const shell of ["bash", "zsh", "fish"])
    writeFileSync(join(folder, `portico.${shell}`), completion(shell).stdout);
});
afterAll(() => rmSync(folder, { recursive: true }));

const completion = (...args: readonly string[]) =>
  spawnSync(process.execPath, [bundle, "completion", ...args], { encoding: "utf8" });

test("another shell is wrong usage", () => {
  expect(completion("tcsh")).toMatchObject({ status: 2, stdout: "" });
  expect(completion("tcsh").stderr).toContain("Allowed choices are bash, zsh, fish.");
});

function shell(program: string, args: readonly string[], input = ""): string[] {
  const env = { PATH: process.env["PATH"], HOME: folder, TERM: "dumb" };
  const { stdout, stderr } = spawnSync(program, args, { cwd: folder, env, input, encoding: "utf8" });
  expect(stderr).toBe("");
  return stdout.split("\n").filter((line) => line !== "");
}

/** What is offered for the last word of a line, without descriptions. */
const OFFERS: Readonly<Record<"bash" | "fish", (line: string) => string[]>> = {
  bash: (line) =>
    shell("bash", [
      ...["--norc", "-c"],
      'source portico.bash; IFS=" "; read -r -a COMP_WORDS <<< "$1"; [[ $1 != *" " ]] || COMP_WORDS+=("")\n' +
        'COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _portico; printf "%s\\n" "${COMPREPLY[@]}"',
      ...["bash", line],
    ]),
  fish: (line) =>
    shell("fish", ["--no-config", "-c", "source portico.fish; complete -C $argv[1]", line]).map(
      (offer) => offer.split("\t")[0]!,
    ),
};

const LINES: readonly (readonly [line: string, offers: readonly string[]])[] = [
  ["portico ch", ["check"]],
  ["portico certificates ren", ["renew"]],
  ["portico settings ", ["apply", "show", "help"]],
  ["portico check --js", ["--json"]],
  ["portico check --root host --li", ["--live"]],
  ["portico check --root ho", ["host"]],
  ["portico check hosts", ["hosts.json"]],
  ["portico resolve http://a/ --config hosts", ["hosts.json"]],
  ["portico explain config.hsts-p", ["config.hsts-preload"]],
  ["portico completion f", ["fish"]],
  ["portico certificates renew --ti", ["--timeout"]],
  ["portico resolve --method x", []],
];

describe.each(["bash", "fish"] as const)("%s", (name) => {
  testWith(name).each(LINES)("%j is completed by %j", (line, offers) => {
    const plain = OFFERS[name](line).map((offer) => offer.replace(/\/$/, ""));
    expect(plain.sort()).toEqual([...offers].sort());
  });
});

describe("zsh", () => {
  /** The line, after a key for completion, as a terminal's user gets it. */
  function completed(line: string): string {
    const typed = [
      "autoload -U compinit; compinit -u -D; source ./portico.zsh\n",
      `${line}\t\u0001echo "completed: \u0005"\n`,
      "exit\n",
    ].join("");
    const lines = shell("script", ["--quiet", "--command", "zsh -f -i", "/dev/null"], typed);
    return /^completed: (.*?) *\r?$/m.exec(lines.join("\n"))?.[1] ?? lines.join("\n");
  }

  const single = LINES.filter(([, offers]) => offers.length === 1);
  testWith("zsh").each(single)("%j is completed by %j", (line, [offer]) => {
    expect(completed(line).replace(/\/$/, "")).toBe(`${line.slice(0, line.lastIndexOf(" ") + 1)}${offer}`);
  });
});
