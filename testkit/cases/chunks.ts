import { LAST_CHUNK as END } from "../messages.js";
import { hexLength, post, type RequestCase, rows, SMUGGLED } from "./requestCase.js";

const chunked = (body: string): string => post(["Transfer-Encoding: chunked"], body);

/** The chunked coding, byte for byte (RFC 9112, 7.1). */
export const CHUNK_CASES: readonly RequestCase[] = [
  ...rows("chunk size", "passes", (size) => chunked(`${size}\r\nabc\r\n${END}`), [
    "03", "0000000003", "3;a=b", '3;a="b c"', "3;", "3;;", "3;a", "3;a=\xe4", "3;a=b;c=d",
  ]),
  ...rows("chunk size", "passes", (size) => chunked(`${size}\r\nabcdefghij\r\n${END}`), ["a", "A", "0A", "000a"]),
  ...rows("chunk size", 400, (size) => chunked(`${size}\r\nabc\r\n${END}${SMUGGLED}`), [
    "", " 3", "3 ", "\t3", "3\t", "+3", "-3", "-0", "0x3", "0X3", "x3", "3x", "3.0", "3,", "3 ;a", "3:", "3=", "'3'",
    '"3"', "three", "g", "3\0", "\x003", "3\x0b", "3\xa0", "3;\0", "3;a=\x01", "3;a=\x7f", "3;\x0b", "3\n3", "\xb3",
    "10000000000000003", "00000000000003", "fffffffffffffff3", "80000000000000000", "ffffffffffffffff",
  ]),
  ...rows("chunk", 400, (bytes) => chunked(bytes + SMUGGLED), [
    `3\nabc\r\n${END}`, `3\rabc\r\n${END}`, `3\n\rabc\r\n${END}`, `3\r\r\nabc\r\n${END}`, `3\r\nabc\n${END}`,
    `3\r\nabc\r${END}`, `3\r\nabc${END}`, `3\r\nabc\n\r${END}`, `3\r\nabc\r\n\r\n${END}`, `3\r\nabcd\r\n${END}`,
    `3\r\nab\r\n${END}`, `3;a\nabc\r\n${END}`, `3;a\rb\r\nabc\r\n${END}`, `3;a="\r\nabc\r\n\n${END}`,
    "3\r\nabc\r\n0\n\n", "3\r\nabc\r\n0\r\n\n", "3\r\nabc\r\n0\r\r", "3\r\nabc\r\n0\r\n\r\r", "3\r\nabc\r\n0\n\r\n",
    "3\r\nabc\r\n0 \r\n\r\n", "3\r\nabc\r\n-0\r\n\r\n", "3\r\nabc\r\n0x0\r\n\r\n",
    "3\r\nabc\r\n00000000000000\r\n\r\n", "\r\n3\r\nabc\r\n0\r\n\r\n",
  ]),
  ...rows("trailer", "passes", (lines) => chunked(`3\r\nabc\r\n0\r\n${lines}\r\n`), [
    "X-T: u\r\n", "X-T:\r\n", "Content-Length: 500\r\n", "Transfer-Encoding: chunked\r\n", "Host: other.example\r\n",
    "Connection: close\r\n", "X-T: \xe4\r\nX-U: v\r\n",
  ]),
  ...rows("trailer", 400, (lines) => chunked(`3\r\nabc\r\n0\r\n${lines}\r\n`), [
    "GET /sync/smuggled HTTP/1.1\r\nHost: sync.example\r\n", "abc\r\n", ": u\r\n", "X-T : u\r\n", "X(T: u\r\n",
    " X-T: u\r\n",
    "\tX-T: u\r\n", "X-T: u\r\n folded\r\n", "X-T: u\n", "X-T: u\rX-U: v\r\n", "X-T: \0\r\n", "X-T: \x01\r\n",
    "\0\r\n", "\n",
  ]),
  { name: "no chunk but the last", bytes: chunked(END), outcome: "passes" },
  { name: "the last chunk with an extension", bytes: chunked("0;a=b\r\n\r\n"), outcome: "passes" },
  { name: "the last chunk in several zeros", bytes: chunked("3\r\nabc\r\n000\r\n\r\n"), outcome: "passes" },
  { name: "a request behind the chunks", bytes: chunked(`3\r\nabc\r\n${END}`) + SMUGGLED, outcome: "two" },
  { name: "a chunk that holds a request, and an end",
    bytes: chunked(`${hexLength(END + SMUGGLED)}\r\n${END}${SMUGGLED}\r\n${END}`), outcome: "passes" },
  { name: "chunks that never end", bytes: chunked("1000\r\nabc"), outcome: "waits" },
  { name: "an extension that never ends", bytes: chunked(`3;${"a".repeat(5_000)}`), outcome: 400 },
  { name: "extensions of many chunks", bytes: chunked(`1;${"a".repeat(4_000)}\r\nx\r\n`.repeat(20) + END),
    outcome: "passes" },
  { name: "trailers that never end", bytes: chunked(`${END.slice(0, 3)}${"X-T: u\r\n".repeat(3_000)}`), outcome: 400 },
  { name: "many small chunks", bytes: chunked("1\r\nx\r\n".repeat(3_000) + END), outcome: "passes" },
];
