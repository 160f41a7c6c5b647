import { pageProblems } from "../../model/config/errorPageChecks.js";
import { ERROR_PAGE_BYTES_MAX, type Problem, problem, type ProxyConfig } from "../../model/serving.js";
import { readText } from "./files.js";
import { readOpenToOthers } from "../files/openToOthers.js";

/** A config with the content of its error pages, and the problems of their files. */
export interface WithErrorPages {
  readonly config: ProxyConfig;
  readonly problems: readonly Problem[];
}

/**
 * Puts pages from files into the config, because workers read no files, and a changed page counts as a changed config.
 */
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

/**
 * A page is sent to clients: the rule of static files keeps a user who can change a directory on its path from having a
 * secret sent instead. Directories that only some users may enter are allowed, because the config names the file.
 */
async function readPage(file: string, label: string): Promise<{ text: string } | { problem: Problem }> {
  const refused = (message: string) => ({ problem: problem("files.unreadable", label, message) });
  try {
    const read = await readOpenToOthers(file, ERROR_PAGE_BYTES_MAX);
    if ("text" in read) return read;
    if ("why" in read) return refused(`may not be sent to clients: ${read.why}`);
    const allowed = `up to ${ERROR_PAGE_BYTES_MAX} bytes, including embedded images`;
    return { problem: problem("config.bad-error-page", label, `has ${read.size} bytes`, { allowed }) };
  } catch {
    // Reading the file by name shows the reason.
    const read = await readText(file, label, { bytesMax: ERROR_PAGE_BYTES_MAX });
    return "problem" in read ? read : refused("was replaced while it was read");
  }
}
