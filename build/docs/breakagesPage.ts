import {
  BREAKAGES,
  type Breakage,
  type BrokenDestroy,
  DESTROYS,
  SERVICES,
} from "../../proof/hosts/breakages.js";
import { BY_HAND, caseOf, NOT_KNOWN, THINGS_BROKEN } from "../../proof/hosts/deployedThings.js";
import { page, type Page } from "./page.js";

/** docs/breakages.md, only from the table that is run on a real host. */
export async function breakagesPage(): Promise<Page> {
  const count = Object.values(BREAKAGES).flat().length + DESTROYS.length;
  const text = [
    "# Tested faults and their fixes",
    "",
    `This page lists ${count} ways to break an apply, a destroy, or a host that runs a front end. \`npm run test:hosts\` does`,
    "each of them on a real Debian, one after the other, and checks the row of `portico doctor` and its text, the services",
    "that remote clients still get, and that the fix works. In a text, `…` stands for any other text.",
    "",
    "`again` stands for `portico activate --again` on the host (`/var/lib/portico/deployment/command activate --again`); an",
    "apply does the same. Where the table names no row of `portico doctor`, nothing is left to report: the host has fixed",
    "the fault without help, or Portico refused the command and changed nothing.",
    "",
    ...Object.entries(BREAKAGES).flatMap(([about, breakages]) => [
      `## ${about}`,
      "",
      ...table(["fault", "row of `doctor`", "text", "still served", "fix"], breakages.map(row)),
      "",
    ]),
    "## Destroy",
    "",
    ...table(["fault", "message of the destroy", "fix"], DESTROYS.map(destroyRow)),
    "",
    ...everyThing(),
  ].join("\n");
  return page("docs/breakages.md", "`proof/hosts/breakages.ts`", text);
}

function row({ name, rows, message, tries, down = [], heals, thenAgain, remedy }: Breakage): string[] {
  const seen = [tries?.message, message].filter((text) => text !== undefined);
  const left = Object.keys(SERVICES).filter((service) => !(down as readonly string[]).includes(service));
  const served = down.length === 0 ? "everything" : left.length === 0 ? "nothing" : left.join(", ");
  const command = heals === "itself" ? "the host itself" : heals === "again" ? heals : `\`${brief(heals)}\``;
  const how = remedy ?? command;
  const names = rows.slice(0, 1).map((id) => `\`${id}\``);
  return [name, names.join(""), seen.join("; "), served, thenAgain === true ? `${how}, then again` : how];
}

function destroyRow({ name, message, heals, remedy }: BrokenDestroy): string[] {
  const how = remedy ?? (heals === undefined ? undefined : `\`${brief(heals)}\``);
  return [name, message ?? "", how === undefined ? "nothing more" : `${how}, then another destroy`];
}

/** The cases that are generated: each thing in each way. */
function everyThing(): string[] {
  const things = [...new Set(THINGS_BROKEN.map(({ thing }) => thing))];
  const kinds = (thing: string): string =>
    THINGS_BROKEN.filter((one) => one.thing === thing)
      .map((one) => (NOT_KNOWN[caseOf(one)] === undefined ? one.kind : `(${one.kind})`))
      .join(", ");
  return [
    "## Every thing of a deployment, broken in every way",
    "",
    `These ${THINGS_BROKEN.length} cases are generated. The first row of \`portico doctor\` that fails names the thing, and its fix, carried out as`,
    "it is printed, heals the host. A run of the tests draws some of the cases by its seed; `PORTICO_BREAKAGES=all npm run",
    "test:hosts -- proof/hosts/breakagesDrawn.test.ts` takes all of them, and prints how many were named and healed.",
    "",
    ...table(
      ["thing", "ways"],
      things.map((thing) => [`\`${thing}\``, kinds(thing)]),
    ),
    "",
    "`foreign` is a thing with another owner; `replaced` is a directory where a file was, or a file where a directory was;",
    "`looped` is a link to itself. In brackets are cases in which no row fails:",
    "",
    ...table(["case", "reason"], Object.entries(NOT_KNOWN)),
    "",
    "Of these the printed fix is not the whole repair; the tests do what a person has to do, and see the host healed:",
    "",
    ...table(
      ["case", "reason", "fix"],
      Object.entries(BY_HAND).map(([name, { reason, remedy }]) => [name, reason, remedy]),
    ),
  ];
}

/** A command without the waits of the test. */
const brief = (command: string): string => command.replace(/(?:; sleep [\d.]+| 2>&1| 2> \/dev\/null)/g, "");

function table(head: readonly string[], lines: readonly (readonly string[])[]): string[] {
  const cells = (line: readonly string[]): string =>
    `| ${line.map((cell) => cell.replaceAll("|", "\\|").replaceAll("\n", " ")).join(" | ")} |`;
  return [cells(head), cells(head.map(() => "---")), ...lines.map(cells)];
}
