import type { Case } from "../deviations.js";
import { ask, get, line } from "../../wire/case.js";

/** Targets that must reach an upstream unchanged, and which (decisions 1.3). */
const RAW_TARGETS: readonly (readonly [target: string, upstream: string])[] = [
  ["/sync", "web"], ["/sync?x=1", "web"], ["/sync?", "web"], ["/sync??x", "web"], ["/syncfoo", "web"],
  ["/sync;x", "web"], ["/sync%2Fx", "web"], ["/sync%3Fx", "web"], ["/syncdav", "dav"], ["/syncdavx", "dav"],
  ["//sync/x", "web"], ["/%73ync/x", "web"], ["/%73yncdav/x", "dav"], ["/sync/./a", "web"], ["/sync//a//b", "web"],
  ["/sync/a/../b", "web"], ["/sync/../syncdav/x", "dav"], ["/sync/%2e%2e/syncdav/y", "dav"],
  ["/sync/..%2Fsyncdav/y", "dav"], ["/synchttp/../sync?x", "web"], ["/synchttp/%2e%2e/sync/x", "web"],
  ["/x/../sync/y", "web"], ["/sync/a?b=/../c%zz", "web"], ["/sync/a%0Ab", "web"], ["/sync/%E4%F6", "web"],
];

/** Bytes that no client should send unencoded, but that nginx passes. */
const RAW_BYTES = ["\xe4", "|", "{", "}", "^", '"', "<", ">", "\\", "`", "[", "]"];

/** Which location a path belongs to, and what goes upstream of it (decisions 1.3 and 1.4). */
export const LOCATION_CASES: readonly Case[] = [
  ...RAW_TARGETS.map(([target, upstream]): Case => ({ name: `location: ${target} goes to ${upstream} unchanged`,
    send: get(target), status: 200, expect: { "upstream name": upstream, "upstream line": `GET ${target} HTTP/1.1` },
  })),
  ...RAW_BYTES.map((bytes): Case => ({ name: `location: /sync/ with ${JSON.stringify(bytes)} goes on unchanged`,
    send: line(`GET /sync/${bytes} HTTP/1.1`), status: 200 })),
  ...["/sync/#frag", "/sync/?a#b", "/sync/a%20b#"].map((target): Case => ({ name: `location: ${target} has a fragment`,
    send: line(`GET ${target} HTTP/1.1`), status: 200, rules: ["strictRequest"] })),
  { name: "location: names are compared with their case", send: get("/Sync/"), status: 404 },
  { name: "location: a path that no location matches", send: get("/nowhere"), status: 404 },
  { name: "location: HEAD of such a path", send: ask("HEAD", "/nowhere"), status: 404 },
  { name: "location: POST of such a path", send: { ...ask("POST", "/nowhere"), body: ["abc"] }, status: 404 },
  ...[
    "/../sync", "/x/../../sync", "/sync/%", "/sync/%zz", "/sync/%00", "/%2e%2e/sync", "/sync/%2", "/sync/%g0",
  ].map((target): Case => ({
    name: `location: ${target} is malformed or leaves the root`,
      send: get(target), status: 400 })),
  { name: "location: a raw space in the target", send: line("GET /sync/a b HTTP/1.1"), status: 400 },
  { name: "location: a NUL in the target", send: line("GET /sync/a\0b HTTP/1.1"), status: 400 },
  { name: "location: a control byte in the target", send: line("GET /sync/a\x01b HTTP/1.1"), status: 400 },
  { name: "location: a DEL in the target", send: line("GET /sync/a\x7fb HTTP/1.1"), status: 400 },
  { name: "location: a target that is a word", send: line("GET sync HTTP/1.1"), status: 400 },
];

const stripped = (target: string, sent: string, rules: Case["rules"] = []): Case => ({
  name: `strip: ${target} as ${sent}`,
  send: get(target),
  status: 200,
  expect: rules.length === 0 ? { "upstream line": `GET ${sent} HTTP/1.1` } : {},
  rules,
});

/** What the file server is sent (decisions 2.1). */
export const STRIP_CASES: readonly Case[] = [
  stripped("/synchttp/", "/"),
  stripped("/synchttp/?x=1", "/?x=1"),
  stripped("/synchttp/files/token/name.txt", "/files/token/name.txt"),
  stripped("/synchttp/a%20b?x=%20", "/a%20b?x=%20"),
  stripped("/synchttp/%3F%23%25%2525", "/%3F%23%25%2525"),
  stripped("/synchttp/a??b", "/a??b"),
  stripped("/synchttp/;a=~:@&+$[],!'()*", "/;a=~:@&+$[],!'()*"),
  stripped("//synchttp/a%20b", "/a%20b"),
  stripped("/%73ynchttp/a", "/a"),
  stripped("/synchttp/../synchttp/b", "/b"),
  stripped("/sync/../synchttp/c?d", "/c?d"),
  stripped("/synchttp/%E4%C3%A4", "/%E4%C3%A4"),
  stripped("/synchttp/a%2Fb", "/a/b", ["rawStrip"]),
  stripped("/synchttp//a//b", "/a/b", ["rawStrip"]),
  stripped("/synchttp/a/../b", "/b", ["rawStrip"]),
  stripped("/synchttp/%7E%3B%3A%40%26%3D%2B%24%5B%5D", "/~;:@&=+$[]", ["rawStrip"]),
  stripped("/synchttp/%e4", "/%E4", ["rawStrip"]),
  stripped("/synchttp/a?", "/a", ["rawStrip"]),
  stripped("/synchttp/a%0Ab", "/synchttp/a%0Ab", ["rawStrip"]),
  { name: "strip: unencoded bytes behind /synchttp", send: line('GET /synchttp/|{}^`"<>\\\xe4 HTTP/1.1'), status: 200,
    rules: ["rawStrip"] },
  { name: "strip: /synchttp alone", send: get("/synchttp"), status: 500, rules: ["emptyRest"] },
  { name: "strip: /synchttp with a query alone", send: get("/synchttp?x=1"), status: 500, rules: ["emptyRest"] },
  { name: "strip: /synchttpfoo", send: get("/synchttpfoo"), status: 200, rules: ["segmentBoundary"] },
];
