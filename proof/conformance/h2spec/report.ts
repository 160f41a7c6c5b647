/** A case of h2spec and what came of it. */
export interface Case {
  readonly section: string;
  readonly name: string;
  readonly outcome: "passed" | "failed" | "skipped";
}

/** Reads a JUnit report: flat, and written by one program only. */
export function readReport(xml: string): Case[] {
  return [...xml.matchAll(/<testcase ([^>]*?)(\/>|>([\s\S]*?)<\/testcase>)/g)].map(
    ([, attributes, , body]) => ({
      section: attribute(attributes!, "package"),
      name: attribute(attributes!, "classname"),
      outcome: /<(?:failure|error)\b/.test(body ?? "")
        ? "failed"
        : /<skipped\b/.test(body ?? "")
          ? "skipped"
          : "passed",
    }),
  );
}

/** What did not pass; a case that was skipped has shown nothing. */
export const failures = (cases: readonly Case[]): Case[] =>
  cases.filter(({ outcome }) => outcome !== "passed");

const attribute = (text: string, name: string): string =>
  new RegExp(`\\b${name}="([^"]*)"`).exec(text)?.[1]?.replaceAll("&#34;", '"').replaceAll("&amp;", "&") ?? "";
