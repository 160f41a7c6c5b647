import type { Case } from "../deviations.js";
import { response, ask, get, head, line, post } from "../../wire/case.js";

const location = (value: string, status = "302 Found"): string =>
  response([`HTTP/1.1 ${status}`, `Location: ${value}`, "Content-Length: 0"]);

/** `Location` and its like in responses of an upstream (decisions 5.1). */
export const REWRITE_CASES: readonly Case[] = [
  { name: "response: Location at the upstream's own address", send: get("/sync/x"),
    response: location("http://127.0.0.1:{web}/sync/y?z"), status: 302, rules: ["publicOrigin"] },
  { name: "response: Location at the file server's own address", send: get("/synchttp/x"),
    response: location("http://127.0.0.1:{files}/files/y"), status: 302, rules: ["publicOrigin"] },
  { name: "response: Location at the WebDAV daemon's own address, 201", send: ask("PUT", "/syncdav/x"),
    response: location("http://127.0.0.1:{dav}/syncdav/x", "201 Created"), status: 201, rules: ["publicOrigin"] },
  { name: "response: Location at another host", send: get("/sync/x"), response: location("http://other.example/sync/y"),
    status: 302 },
  { name: "response: Location at another port", send: get("/sync/x"), response: location("http://127.0.0.1:1/sync/y"),
    status: 302 },
  { name: "response: Location at the public address", send: get("/sync/x"),
    response: location("https://sync.example/sync/y"), status: 302 },
  { name: "response: Location at the public address, without TLS", send: get("/sync/x"), over: ["https", "h2"],
    response: location("http://sync.example/sync/y"), status: 302, rules: ["securedUrl"] },
  { name: "response: Set-Cookie of a path that is cut", send: get("/synchttp/x"),
    response: response(["HTTP/1.1 200 OK", "Set-Cookie: a=b; Path=/", "Content-Length: 0"]), status: 200,
    rules: ["cookiePath"] },
  { name: "response: Location that is a path", send: get("/sync/x"), response: location("/sync/y"), status: 302 },
  { name: "response: Location that is relative", send: get("/sync/x"), response: location("y?z"), status: 302 },
  { name: "response: Content-Location at the upstream's own address", send: get("/syncdav/x"),
    response: response(["HTTP/1.1 200 OK", "Content-Location: http://127.0.0.1:{dav}/syncdav/y", "Content-Length: 0"]),
    status: 200, rules: ["publicOrigin"] },
  { name: "response: Refresh at the upstream's own address", send: get("/sync/x"),
    response: response(["HTTP/1.1 200 OK", "Refresh: 0; url=http://127.0.0.1:{web}/sync/y", "Content-Length: 0"]),
    status: 200, rules: ["publicOrigin"] },
  { name: "response: Location at the upstream's own address, asked by port", over: ["http"],
    send: { ...get("/sync/x"), host: "sync.example:{http}" }, response: location("http://127.0.0.1:{web}/sync/y"),
    status: 302, rules: ["hostAsAsked"] },
];

const redirected = (what: string, send: Case["send"], status = 301, rules?: Case["rules"]): Case => ({
  name: `redirect: ${what}`,
  over: ["redirect"],
  send,
  status,
  rules,
});

/** Port 80 in TLS mode (decisions 1.5). */
export const REDIRECT_CASES: readonly Case[] = [
  ...[
    "/sync", "/sync/", "/sync?x=1", "/synchttp/x", "/syncmedia/img/a.png", "/syncdav", "/syncfoo",
    "/sync/a%20b?c=%2F", "/sync//x", "//sync/x", "/%73ync/", "/sync/./a/../b", "/sync?",
  ].map((target) => redirected(`${target} leads to TLS`, get(target))),
  redirected("/sync/#f has a fragment", get("/sync/#f"), 301, ["strictRequest"]),
  redirected("POST", post("/sync/", ["abc"])),
  redirected("POST above the default limit", post("/sync/", ["x".repeat(1_048_577)]), 413, ["redirectTakesAnyBody"]),
  redirected("PROPFIND", ask("PROPFIND", "/syncdav/")),
  redirected("HEAD", ask("HEAD", "/syncdav/")),
  redirected("Host with a port and capitals", { ...get("/sync/"), host: "SYNC.example:8080" }),
  redirected("absolute-form", head("GET http://sync.example/sync/x HTTP/1.1", "Host: sync.example")),
  redirected("HTTP/1.0", line("GET /sync/ HTTP/1.0")),
  redirected("raw bytes", line("GET /sync/\xe4|<> HTTP/1.1")),
  redirected("/", get("/"), 200, ["redirectOnlySync"]),
  redirected("another path", get("/other"), 404),
  redirected("names are compared with their case", get("/Sync"), 404),
  redirected("an unknown Host", { ...get("/sync/"), host: "other.example" }, 404),
  redirected("a space in the target", line("GET /sync/a b HTTP/1.1"), 400),
  redirected("line breaks cannot be smuggled into Location", get("/sync/%0d%0aX-A:%201")),
];
