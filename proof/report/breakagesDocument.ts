import { BREAKAGES, type Breakage, type BrokenDestroy, DESTROYS, SERVICES } from "../hosts/breakages.js";

/** docs/breakages.md, only from the table that is run on a real host. */
export function renderBreakages(): string {
  const count = Object.values(BREAKAGES).flat().length + DESTROYS.length;
  return [
    "# Ways to break it",
    "",
    `${count} ways to break a host that runs a front end, an apply or a destroy. Each is done on a real Debian, one after the`,
    "other, by `npm run test:hosts`, which checks what is seen, what clients outside are still served, and that the fix works. This",
    "page is written by `npm run reliability` from `proof/hosts/breakages.ts`; do not edit it.",
    "",
    "`again` stands for `portico activate --again` on the host (`/var/lib/portico/deployment/command activate --again`), which",
    "an apply does as well. Where no row of `portico doctor` is given, nothing is left to report: the host has fixed it",
    "by itself, or nothing was changed.",
    "",
    ...Object.entries(BREAKAGES).flatMap(([about, breakages]) => [
      `## ${about}`,
      "",
      ...table(
        ["what is done", "row of `doctor`", "what is seen", "still served", "what fixes it"],
        breakages.map(row),
      ),
      "",
    ]),
    "## Destroy",
    "",
    ...table(["what is done", "what the destroy says", "what fixes it"], DESTROYS.map(destroyRow)),
    "",
  ].join("\n");
}

function row({ name, rows, says, tries, down = [], heals, thenAgain }: Breakage): string[] {
  const seen = [tries?.says, says].flatMap((pattern) => (pattern === undefined ? [] : [inWords(pattern)]));
  const left = Object.keys(SERVICES).filter((service) => !(down as readonly string[]).includes(service));
  const served = down.length === 0 ? "everything" : left.length === 0 ? "nothing" : left.join(", ");
  const how = heals === "itself" ? "the host itself" : heals === "again" ? heals : `\`${brief(heals)}\``;
  const names = rows.slice(0, 1).map((id) => `\`${id}\``);
  return [name, names.join(""), seen.join("; "), served, thenAgain === true ? `${how}, then again` : how];
}

function destroyRow({ name, says, heals }: BrokenDestroy): string[] {
  return [
    name,
    inWords(says),
    heals === undefined ? "nothing more" : `\`${brief(heals)}\`, then another destroy`,
  ];
}

/** A pattern as the text that it looks for. */
function inWords({ source }: RegExp): string {
  return source
    .replaceAll("[^]*", " … ")
    .replaceAll("\\S+", "…")
    .replace(/\\([^A-Za-z])/g, "$1")
    .replaceAll("\\d", "N")
    .replaceAll("|", " or ");
}

/** A command without the waits of the test. */
const brief = (command: string): string => command.replace(/(?:; sleep [\d.]+| 2>&1| 2> \/dev\/null)/g, "");

function table(head: readonly string[], lines: readonly (readonly string[])[]): string[] {
  const cells = (line: readonly string[]): string =>
    `| ${line.map((cell) => cell.replaceAll("|", "\\|").replaceAll("\n", " ")).join(" | ")} |`;
  return [cells(head), cells(head.map(() => "---")), ...lines.map(cells)];
}
