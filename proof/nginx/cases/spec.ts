import type { Case } from "../deviations.js";
import { ask, response, get } from "../../wire/case.js";

/** The response of the web application to a visitor without a session (service 5.1 and 5.4). */
const loginAt = (origin: string): string =>
  response([
    "HTTP/1.1 302 Found",
    "Server: gunicorn/20.1.0",
    "Date: Sat, 21 Nov 2026 10:00:00 GMT",
    "Content-Type: text/html; charset=utf-8",
    "Content-Length: 0",
    `Location: ${origin}/sync/accounts/login/?next=/sync/`,
    "Vary: Accept-Language, Cookie",
    "Content-Language: en",
  ]);

const LOGIN = { "field content-type": "text/html; charset=utf-8", "field vary": "Accept-Language, Cookie",
  "field content-language": "en" };

/** What service 4 and 5 require. */
export const SERVICE_CASES: readonly Case[] = [
  { name: "service 4.1: /sync: the path goes to the web application unchanged", send: get("/sync/library/?page=2"),
    status: 200, expect: { "upstream name": "web", "upstream line": "GET /sync/library/?page=2 HTTP/1.1" } },
  { name: "service 4.2: /sync: the header rules", over: ["http"],
    send: get("/sync/", [["X-Forwarded-For", "192.0.2.7"]]), status: 200,
    expect: { "upstream field host": "Host: sync.example", "upstream field x-real-ip": "X-Real-IP: 127.0.0.1",
      "upstream field x-forwarded-for": "X-Forwarded-For: 192.0.2.7, 127.0.0.1",
      "upstream field x-forwarded-host": "X-Forwarded-Host: sync.example" } },
  { name: "service 4.1: /synchttp: the prefix is stripped, no host or forwarding fields are set",
    send: get("/synchttp/files/token/name.txt?x=1"), status: 200,
    expect: { "upstream name": "files", "upstream line": "GET /files/token/name.txt?x=1 HTTP/1.1",
      "upstream field host": "Host: 127.0.0.1:{files}" } },
  { name: "service 4.1: /syncmedia: a file of the installation's media folder", send: get("/syncmedia/img/a.png"),
    status: 200, expect: { "field content-type": "image/png", body: "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHI" } },
  { name: "service 4.1: /syncdav: the path goes to the WebDAV daemon unchanged",
    send: ask("PROPFIND", "/syncdav/library/", [["Depth", "1"]]), status: 200,
    expect: { "upstream name": "dav", "upstream line": "PROPFIND /syncdav/library/ HTTP/1.1" } },
  { name: "service 4.3: TLS mode: X-Forwarded-Proto is https, and the four routes are those of 4.1",
    over: ["https", "h2"], send: get("/syncdav/x", [["X-Forwarded-For", "192.0.2.7"]]), status: 200,
    expect: { "upstream field x-forwarded-proto": "X-Forwarded-Proto: https",
      "upstream field x-real-ip": "X-Real-IP: 127.0.0.1",
      "upstream field x-forwarded-for": "X-Forwarded-For: 192.0.2.7, 127.0.0.1" } },
  { name: "service 5.1: HEAD / of the default server", over: ["http", "redirect"],
    send: { ...ask("HEAD", "/"), host: "127.0.0.1" }, status: 200,
    expect: { "field content-type": "text/html", server: "with version" } },
  { name: "service 5.1: HEAD / of the application's server", send: ask("HEAD", "/"), status: 200,
    expect: { "field content-type": "text/html", server: "without version" } },
  { name: "service 5.1: HEAD of a media file", send: ask("HEAD", "/syncmedia/img/a.png"), status: 200,
    expect: { "field content-type": "image/png", "field content-length": "45",
      "field last-modified": "Tue, 02 Jan 2024 03:04:05 GMT", "field etag": '"OPAQUE"',
      "field accept-ranges": "bytes" } },
  { name: "service 5.1: HEAD /sync/ in plain mode leads to the login", over: ["http"], send: ask("HEAD", "/sync/"),
    response: loginAt("http://sync.example"), status: 302, expect: { ...LOGIN,
      "field location": "http://sync.example/sync/accounts/login/?next=/sync/", server: "without version" } },
  { name: "service 5.1: HEAD /sync/ on port 80 in TLS mode leads to TLS", over: ["redirect"],
    send: ask("HEAD", "/sync/"), status: 301, expect: { "field location": "https://sync.example/sync/",
      "field content-type": "text/html", server: "without version" } },
  { name: "service 5.1: HEAD /sync/ in TLS mode leads to the login", over: ["https", "h2"],
    send: ask("HEAD", "/sync/"), response: loginAt("https://sync.example"), status: 302,
    expect: { ...LOGIN, "field location": "https://sync.example/sync/accounts/login/?next=/sync/" } },
];
