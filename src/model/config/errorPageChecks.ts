import { errorPageFault } from "../net/errorPage.js";
import { type Problem, problem } from "../text/problem.js";
import type { ProxyConfig } from "./config.js";

/** Problems of the pages that are in the config, and of statuses that have two. */
export function errorPageProblems({ virtualServers, maintenance: { page } }: ProxyConfig): Problem[] {
  const problems = page === undefined ? [] : pageProblems(page, "maintenance.page");
  return problems.concat(serverProblems(virtualServers));
}

function serverProblems(virtualServers: ProxyConfig["virtualServers"]): Problem[] {
  return virtualServers.flatMap((server, s) => {
    const at = `virtualServers[${s}].errorPages`;
    const first = new Map<number, string>();
    return server.errorPages.flatMap((page, i) => [
      ...("html" in page ? pageProblems(page.html, `${at}[${i}].html`) : []),
      ...page.statuses.flatMap((status, j) => {
        const path = `${at}[${i}].statuses[${j}]`;
        const before = first.get(status);
        first.set(status, before ?? path);
        if (before === undefined) return [];
        return [
          problem("config.duplicate-error-page", path, `is also at ${before}`, {
            received: status,
            allowed: "each status once in a virtual server",
          }),
        ];
      }),
    ]);
  });
}

/** @param path of the field that has the page or names its file */
export function pageProblems(html: string, path: string): Problem[] {
  const fault = errorPageFault(html);
  if (fault === undefined) return [];
  const { message, received, allowed, fix } = fault;
  return [problem("config.bad-error-page", path, message, { received, allowed, fix })];
}
