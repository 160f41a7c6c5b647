import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createTcpServer } from "node:net";
import { createLoadUpstream } from "../../../testkit/load/loadUpstream.js";

/** A daemon of the application behind the front end: `application.ts web|files|webdav|database`, on loopback. */
const DAEMONS: Readonly<Record<string, () => void>> = {
  // As Django does: below SITE_ROOT are its pages, and all of them lead to LOGIN_URL first.
  web: () => {
    const settings = readFileSync("/srv/sync/conf/web_settings.py", "utf8");
    const setting = (name: string, byDefault: string): string =>
      new RegExp(`^${name} = ["'](.*)["']`, "m").exec(settings)?.[1] ?? byDefault;
    const root = setting("SITE_ROOT", "/");
    const login = setting("LOGIN_URL", "/accounts/login/");
    createServer((request, response) => {
      const isOurs = root === "/" ? request.url === "/" : request.url!.startsWith(root);
      if (!isOurs) return void response.writeHead(404).end("<h1>Not Found</h1>");
      const scheme = request.headers["x-forwarded-proto"] === "https" ? "https" : "http";
      response.writeHead(302, {
        "Content-Type": "text/html; charset=utf-8",
        Vary: "Accept-Language, Cookie",
        "Content-Language": "en",
        Location: `${scheme}://${request.headers.host}${login}?next=${request.url}`,
      });
      response.end();
    }).listen(8000, "127.0.0.1");
  },
  files: () => void createLoadUpstream().listen(8082, "127.0.0.1"),
  webdav: () =>
    void createServer((_, response) => void response.writeHead(207).end()).listen(8080, "127.0.0.1"),
  database: () =>
    void createTcpServer((socket) => void socket.end("5.5.5-MariaDB")).listen(3306, "127.0.0.1"),
};
DAEMONS[process.argv[2]!]!();
