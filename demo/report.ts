import path from "node:path";
import { BUNDLE } from "../build/paths.js";
import type { CheckedResponse } from "../src/host/diagnosis/expected/liveCheck.js";
import type { Mode } from "./synthesize.js";
import type { SitePaths } from "./upstreams/webUi.js";

/** The expected responses of both modes as one table; a failure brings what was seen and why. */
export function responseTable(rows: readonly (CheckedResponse & { readonly mode: Mode })[]): string {
  const width = Math.max(...rows.map((row) => row.request.length));
  const lines = rows.flatMap((row) => [
    `${row.pass ? "PASS" : "FAIL"}  ${row.mode.padEnd(5)}  ${row.request.padEnd(width)}  ${row.expected}`,
    ...(row.pass ? [] : [`             seen:  ${row.seen}`, `             cause: ${row.cause ?? "unknown"}`]),
  ]);
  const failed = rows.filter((row) => !row.pass).length;
  const head = `      ${"mode".padEnd(5)}  ${"request".padEnd(width)}  expected`;
  return [head, ...lines, `${rows.length - failed} of ${rows.length} responses as expected`].join("\n");
}

export interface Running {
  /** The page that shows what goes on. */
  readonly status: string;
  readonly http: string;
  readonly https: string;
  readonly paths: SitePaths;
  readonly hostRoot: string;
  readonly configFile: string;
  readonly proxyPid: number;
}

/** Where it runs and what can be tried with it, ready to be pasted. */
export function whatNext(running: Running): string {
  const { status, http, https, paths, hostRoot } = running;
  const portico = `node ${quoted(shownPath(BUNDLE))}`;
  const files = `${https}${paths.fileServer}/files`;
  const dav = `${https}${paths.webdav}`;
  return `
What goes on, live:
  ${status}
Serving in TLS mode (the certificate is self-signed, so browsers ask for an exception):
  ${https}${paths.web}/    the application: any name and password; upload and picture behind the login
  ${http}${paths.web}/    redirects to https
  ${http}/        the default server

Upload, and get it back:
  curl -k -T package.json ${files}/package.json
  curl -k ${files}/package.json | head -3
WebDAV:
  curl -k -X PROPFIND -H 'Depth: 1' ${dav}/
  curl -k -X MOVE -H 'Destination: ${dav}/moved.txt' ${dav}/hello.txt
Change the config, then let it be checked; a bad one is refused with every problem at once:
  \${EDITOR:-vi} ${quoted(shownPath(running.configFile))}
  ${portico} check --root ${quoted(shownPath(hostRoot))}
  kill -HUP ${running.proxyPid}    (the running proxy takes the new config without dropping a request)
The laid-out host, file by file as Terraform would write it:
  ${quoted(shownPath(hostRoot))}
`;
}

/** A path as short as it can be typed here. */
export function shownPath(file: string): string {
  const relative = path.relative(process.cwd(), file);
  return relative.startsWith("..") ? file : relative || ".";
}

/** As a shell takes it, whatever is in it. */
function quoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
