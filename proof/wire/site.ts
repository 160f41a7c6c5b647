import {
  chmodSync,
  chownSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { dhParametersPem } from "../../src/render/dhParameters.js";
import { issue } from "../../testkit/certificates.js";
import { randomText } from "../../testkit/random.js";
import { publicFolder } from "../../testkit/publicFolder.js";

/** Deployment of the service: plain HTTP (service 4.1) or TLS (service 4.3). */
export type Mode = "plain" | "tls";

/** Server name of the application's virtual server. */
export const HOST = "sync.example";
/** Server names besides, which respond with 204. */
export const WILDCARD = "*.wild.example";

/** Fields that both set and remove in every response of the application's server (decisions 5.5). */
export const RESPONSE_HEADERS = {
  set: { "X-Frame-Options": "SAMEORIGIN", "Referrer-Policy": "same-origin" },
  remove: ["X-Removed"],
} as const;

/** Where everything lies that both proxies serve from. */
export interface SitePaths {
  readonly folder: string;
  /** Installation of the web application; its `media` folder is served. */
  readonly install: string;
  /** Page of the default server. */
  readonly defaultPage: string;
  readonly tls: { readonly certificate: string; readonly key: string; readonly dhparam: string };
}

/** All of it, in one temporary folder. */
export interface Site extends SitePaths {
  /** Who the proxies run as, if the test itself runs as root, which may read everything. */
  readonly user: { readonly uid: number; readonly gid: number; readonly names: string } | undefined;
  remove(): void;
}

/** Ports that one proxy listens on, and those of its upstreams. */
export interface Ports {
  readonly http: number;
  readonly https: number;
  readonly web: number;
  readonly files: number;
  readonly dav: number;
}

/** A moment in whole seconds, so that both proxies derive the same validators from it. */
export const MODIFIED = new Date("2024-01-02T03:04:05Z");

/** Content of `media/img/a.png`: 45 bytes. */
export const IMAGE = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHI";
/** Longer than any buffer on the way. */
export const LARGE_BYTES = 700_000;

export function sitePaths(folder: string): SitePaths {
  return {
    folder,
    install: path.join(folder, "install"),
    defaultPage: path.join(folder, "default"),
    tls: {
      certificate: path.join(folder, "tls/cacert.pem"),
      key: path.join(folder, "tls/privkey.pem"),
      dhparam: path.join(folder, "tls/dhparam2048.pem"),
    },
  };
}

/** A folder that nobody may enter. */
const CLOSED = "media/closed";

/** Where `portico` logs. */
export const logsOf = (mode: Mode, { folder }: SitePaths): string =>
  path.join(folder, `portico-${mode}`, "logs");

export async function createSite(): Promise<Site> {
  const folder = publicFolder("portico-nginx-");
  const site: Site = {
    ...sitePaths(folder),
    user: unprivilegedUser(),
    remove: () => {
      chmodSync(path.join(site.install, CLOSED), 0o700);
      rmSync(folder, { recursive: true, force: true });
    },
  };
  writeFiles(site);
  await writeTlsFiles(site);
  return site;
}

function writeFiles(site: Site): void {
  const put = (name: string, content: string): void => {
    const file = path.join(site.install, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, content);
    utimesSync(file, MODIFIED, MODIFIED);
  };
  put("media/img/a.png", IMAGE);
  put("media/img/a b.png", "space");
  put("media/img/.hidden", "dot file");
  put("media/img/UPPER.PNG", "upper");
  put("media/empty.txt", "");
  put("media/large.bin", randomText(LARGE_BYTES));
  for (const name of TYPED_FILES) put(`media/types/${name}`, name);
  put("media/withindex/index.html", "<p>index</p>");
  put("media/locked.txt", "nobody may read this");
  put(`${CLOSED}/inside.txt`, "nor look in here");
  // Beside the media folder: what a prefix without a segment boundary would reach (decisions 1.4).
  put("media-old/secret.txt", "not public");
  put("mediax", "not public either");
  symlinkSync("a.png", path.join(site.install, "media/img/link-inside.png"));
  symlinkSync("../../media-old/secret.txt", path.join(site.install, "media/img/link-outside.txt"));
  // Nor their owner, who serves them where the tests do not run as root.
  for (const locked of ["media/locked.txt", CLOSED]) chmodSync(path.join(site.install, locked), 0);
  mkdirSync(site.defaultPage);
  writeFileSync(path.join(site.defaultPage, "index.html"), "<!DOCTYPE html>\n<p>It works.</p>\n");
  utimesSync(path.join(site.defaultPage, "index.html"), MODIFIED, MODIFIED);
}

/** One file for each extension that a web application's media folder is likely to hold. */
export const TYPED_FILES = [
  ..."a.css a.js a.mjs a.json a.map a.html a.htm a.txt a.xml a.svg a.png a.gif a.jpg a.jpeg a.ico a.webp".split(
    " ",
  ),
  ..."a.woff a.woff2 a.ttf a.otf a.eot a.pdf a.zip a.gz a.mp3 a.mp4 a.webm a.wasm a.md a.unknown noextension".split(
    " ",
  ),
];

async function writeTlsFiles(site: Site): Promise<void> {
  mkdirSync(path.dirname(site.tls.key));
  const { key, cert } = await issue({ names: [HOST] });
  writeFileSync(site.tls.certificate, cert);
  writeFileSync(site.tls.key, key, { mode: 0o600 });
  writeFileSync(site.tls.dhparam, dhParametersPem());
  if (site.user !== undefined) chownSync(site.tls.key, site.user.uid, site.user.gid);
}

/** Root is not refused any file, so a 403 for unreadable files (service 6.2) shows only without its privileges. */
function unprivilegedUser(): Site["user"] {
  if (process.getuid?.() !== 0) return undefined;
  const idOf = (file: string, name: RegExp): { name: string; id: number } => {
    const entries = readFileSync(file, "utf8")
      .split("\n")
      .map((line) => line.split(":"));
    const entry = entries.find((fields) => name.test(fields[0]!));
    if (entry === undefined) throw new Error(`${file} has no unprivileged ${String(name)}`);
    return { name: entry[0]!, id: Number(entry[2]) };
  };
  const user = idOf("/etc/passwd", /^nobody$/);
  const group = idOf("/etc/group", /^no(?:group|body)$/);
  return { uid: user.id, gid: group.id, names: `${user.name} ${group.name}` };
}
