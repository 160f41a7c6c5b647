import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Links of a page to files and headings that are not there. */
export function deadLinks(page: string, text: string): string[] {
  const prose = text.replace(/^```[^]*?^```/gm, "").replace(/`[^`\n]*`/g, "");
  const links = [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, link]) => link!);
  return links.filter((link) => {
    if (/^[a-z]+:/.test(link)) return false;
    const [file = "", anchor] = link.split("#");
    const target = file === "" ? page : join(dirname(page), file);
    if (file !== "" && !existsSync(target)) return true;
    return (
      anchor !== undefined && !anchorsOf(file === "" ? text : readFileSync(target, "utf8")).includes(anchor)
    );
  });
}

/** Anchors of a page's headings, as GitHub makes them. */
function anchorsOf(text: string): string[] {
  const seen = new Map<string, number>();
  return [...text.replace(/^```[^]*?^```/gm, "").matchAll(/^#+ +(.+)$/gm)].map(([, heading]) => {
    const shown = heading!.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").trim();
    const anchor = shown
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .replace(/\s/g, "-");
    const times = seen.get(anchor) ?? 0;
    seen.set(anchor, times + 1);
    return times === 0 ? anchor : `${anchor}-${times}`;
  });
}
