import { stat } from "node:fs/promises";
import { pageProblems } from "../../model/config/errorPageChecks.js";
import { ERROR_PAGE_BYTES_MAX, type Problem, problem, type ProxyConfig } from "../../model/serving.js";
import { readText } from "./files.js";

/** A config whose error pages are all in it, and what is wrong with the files that had them. */
export interface WithErrorPages {
  readonly config: ProxyConfig;
  readonly problems: readonly Problem[];
}

/** Puts pages that are in files into the config: workers read no files, and a page that changed is a config that did. */
export async function loadErrorPages(config: ProxyConfig): Promise<WithErrorPages> {
  const files = [...filesOf(config)].map(async ([file, field]) => {
    const label = `${field} (${file})`;
    const read = await readPage(file, label);
    if ("problem" in read) return { file, html: "", problems: [read.problem] };
    return { file, html: read.text, problems: pageProblems(read.text, label) };
  });
  const pages = await Promise.all(files);
  const html = new Map(pages.map((page) => [page.file, page.html]));
  const virtualServers = config.virtualServers.map((server) => ({
    ...server,
    errorPages: server.errorPages.map((page) =>
      "file" in page ? { statuses: page.statuses, html: html.get(page.file)! } : page,
    ),
  }));
  return { config: { ...config, virtualServers }, problems: pages.flatMap(({ problems }) => problems) };
}

/** The files, each with the field that first names it. */
function filesOf({ virtualServers }: ProxyConfig): Map<string, string> {
  const files = new Map<string, string>();
  virtualServers.forEach(({ errorPages }, s) =>
    errorPages.forEach((page, i) => {
      if ("file" in page && !files.has(page.file))
        files.set(page.file, `virtualServers[${s}].errorPages[${i}].file`);
    }),
  );
  return files;
}

async function readPage(file: string, label: string): Promise<{ text: string } | { problem: Problem }> {
  // A long file is not read to find that out.
  const found = await stat(file).catch(() => undefined);
  if (found === undefined || !found.isFile() || found.size <= ERROR_PAGE_BYTES_MAX)
    return readText(file, label);
  const allowed = `up to ${ERROR_PAGE_BYTES_MAX} bytes, including embedded images`;
  return { problem: problem("config.bad-error-page", label, `has ${found.size} bytes`, { allowed }) };
}
