import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";

/** Paths that the front end's parts are reached through, each without a slash at its end. */
export interface SitePaths {
  readonly web: string;
  readonly fileServer: string;
  readonly media: string;
  readonly webdav: string;
}

/**
 * The web application daemon: a login, and one page behind it that uses every other route. Its response to a
 * client without a session is what service 5.1 expects; any name and password will do.
 */
export function createWebUi(paths: SitePaths): Server {
  return createServer(new WebUi(paths).handle);
}

/** As Django and its middlewares set them on every page. */
const PAGE_FIELDS = {
  "Content-Type": "text/html; charset=utf-8",
  Vary: "Accept-Language, Cookie",
  "Content-Language": "en",
};

const LOGIN_BYTES_MAX = 4096;

class WebUi {
  /** Session id → user. */
  private readonly sessions = new Map<string, string>();
  private readonly login: string;

  constructor(private readonly paths: SitePaths) {
    this.login = `${paths.web}/accounts/login/`;
  }

  readonly handle = (request: IncomingMessage, response: ServerResponse): void => {
    const [path = "", query = ""] = request.url!.split("?");
    if (path === this.login) {
      const next = this.safeNext(new URLSearchParams(query).get("next"));
      if (request.method === "POST") this.logIn(request, response, next);
      else sendPage(response, 200, loginPage(this.login, next));
      return;
    }
    const id = sessionId(request);
    const user = this.sessions.get(id);
    if (user === undefined) {
      // As Django quotes it: slashes stay.
      const next = encodeURIComponent(request.url!).replaceAll("%2F", "/");
      redirect(request, response, `${this.login}?next=${next}`);
    } else if (path === `${this.paths.web}/accounts/logout/`) {
      this.sessions.delete(id);
      redirect(request, response, this.login);
    } else if (path === `${this.paths.web}/` || path === this.paths.web) {
      sendPage(response, 200, homePage(user, this.paths, origin(request)));
    } else sendPage(response, 404, page("Not found", "<p>There is no such page.</p>"));
  };

  private logIn(request: IncomingMessage, response: ServerResponse, next: string): void {
    let body = "";
    request.setEncoding("utf8");
    request.on("data", (chunk: string) => {
      body += chunk;
      if (body.length > LOGIN_BYTES_MAX) request.destroy();
    });
    request.on("end", () => {
      const id = randomBytes(16).toString("hex");
      this.sessions.set(id, new URLSearchParams(body).get("user") || "somebody");
      const secure = origin(request).startsWith("https:") ? "; Secure" : "";
      const cookie = `sessionid=${id}; Path=${this.paths.web}; HttpOnly; SameSite=Lax${secure}`;
      redirect(request, response, next, { "Set-Cookie": cookie });
    });
  }

  /** Only pages of this application: a link to the login page must not lead elsewhere. */
  private safeNext(next: string | null): string {
    const home = `${this.paths.web}/`;
    return next !== null && next.startsWith(home) && !/[\s\\]|\/\//.test(next) ? next : home;
  }
}

/** Scheme and host as the client used them: the proxy passes them on in X-Forwarded-Proto and Host. */
function origin(request: IncomingMessage): string {
  const scheme = request.headers["x-forwarded-proto"] === "https" ? "https" : "http";
  return `${scheme}://${request.headers.host ?? "localhost"}`;
}

function sessionId(request: IncomingMessage): string {
  return /(?:^|;\s*)sessionid=([0-9a-f]+)/.exec(request.headers.cookie ?? "")?.[1] ?? "";
}

function redirect(
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
  more: Record<string, string> = {},
): void {
  const fields = { ...PAGE_FIELDS, ...more, Location: origin(request) + path, "Content-Length": 0 };
  response.writeHead(302, fields).end();
}

function sendPage(response: ServerResponse, status: number, html: string): void {
  response.writeHead(status, { ...PAGE_FIELDS, "Content-Length": Buffer.byteLength(html) });
  response.end(response.req.method === "HEAD" ? undefined : html);
}

function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem}
label,button{display:block;margin:.8rem 0}code{background:#eee;padding:.1rem .3rem}</style></head>
<body><h1>${title}</h1>
${body}
</body>
</html>
`;
}

function loginPage(action: string, next: string): string {
  return page(
    "File sync demo: log in",
    `<form method="post" action="${action}?next=${encodeURIComponent(next)}">
<label>Name <input name="user" value="demo" autocomplete="username"></label>
<label>Password <input name="password" type="password" value="demo" autocomplete="current-password"></label>
<button>Log in</button>
</form>
<p>Any name and password will do.</p>`,
  );
}

function homePage(user: string, paths: SitePaths, base: string): string {
  return page(
    `Hello, ${escapeHtml(user)}`,
    `<p><img src="${paths.media}/img/logo.png" width="64" height="64" alt="logo"> served by the proxy from
<code>${paths.media}</code>.</p>
<form id="upload" data-files="${paths.fileServer}/files/">
<label>Upload a file of any size through <code>${paths.fileServer}</code>: <input type="file" required></label>
<button>Upload</button>
<output></output>
</form>
<p>WebDAV: <code>${escapeHtml(base)}${paths.webdav}/</code></p>
<p><a href="${paths.web}/accounts/logout/">Log out</a></p>
<script src="${paths.media}/scripts/upload.js"></script>`,
  );
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => `&#${char.charCodeAt(0)};`);
}
