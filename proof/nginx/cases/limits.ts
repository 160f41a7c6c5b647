import type { Case } from "../deviations.js";
import { get, line } from "../../wire/case.js";

/** Error pages and limits on heads (decisions 3.3 and 5.3). */
export const LIMIT_CASES: readonly Case[] = [
  { name: "limit: a page for a browser", send: get("/nowhere", [["User-Agent", "Mozilla/5.0 Chrome/100.0"]]),
    status: 404, rules: ["pagePadding"] },
  { name: "limit: a request line of 8000 bytes", send: line(`GET /sync/${"x".repeat(8000)} HTTP/1.1`), status: 200 },
  { name: "limit: a request line above 8 KiB that is never completed", send: [`GET /sync/${"x".repeat(10_000)}`],
    status: 414 },
  { name: "limit: a field line of 8000 bytes", send: line("GET /sync/ HTTP/1.1", `X-A: ${"x".repeat(8000)}`),
    status: 200 },
  { name: "limit: a field line above 8 KiB", send: line("GET /sync/ HTTP/1.1", `X-A: ${"x".repeat(9000)}`),
    status: 400, rules: ["longFieldLine"] },
  { name: "limit: fields of 20 KiB in all",
    send: line("GET /sync/ HTTP/1.1", ...Array.from({ length: 20 }, (_, i) => `X-${i}: ${"x".repeat(1000)}`)),
    status: 200 },
  { name: "limit: 300 short fields",
    send: line("GET /sync/ HTTP/1.1", ...Array.from({ length: 300 }, (_, i) => `X-${i}: ${i}`)), status: 200,
    rules: ["manyFields"] },
  { name: "limit: fields of 40 KiB in all",
    send: line("GET /sync/ HTTP/1.1", ...Array.from({ length: 10 }, (_, i) => `X-${i}: ${"x".repeat(4000)}`)),
    status: 400, rules: ["unroutedServer"] },
];
