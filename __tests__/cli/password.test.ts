import { spawn } from "node:child_process";
import { scryptSync } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { parseUsers } from "../../src/model/serving.js";
import { ROOT } from "../../build/paths.js";

/** `portico password`, as its own process: the password is on standard input, or on a terminal. */

const COMMAND = [join(ROOT, "node_modules/tsx/dist/cli.mjs"), join(ROOT, "src/cli/main.ts"), "password"];

async function portico(input: string, ...args: readonly string[]) {
  const child = spawn(process.execPath, [...COMMAND, ...args]);
  child.stdin.on("error", () => undefined).end(input);
  const closed = once(child, "close");
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [status] = (await closed) as [number];
  return { status, out, err };
}

test("a line from standard input is one that a file of users may have, and another one each time", async () => {
  const both = await Promise.all([portico("grüße\n", "zoë"), portico("gru\u0308ße", "zoe\u0308")]);
  const made = both.map(({ status, out, err }) => {
    expect({ status, err }).toEqual({ status: 0, err: "" });
    return out;
  });
  expect(made[0]).not.toBe(made[1]);
  for (const line of made) {
    expect(parseUsers(line, false)).toEqual([["zoë", line.trim().slice(4)]]);
    const [, , , salt, hash] = line.trim().split("$") as [string, string, string, string, string];
    const cost = { N: 2 ** 15, r: 8, p: 3, maxmem: 64 * 1024 * 1024 };
    const key = scryptSync("grüße", Buffer.from(salt, "base64"), 32, cost);
    expect(key.toString("base64").replace(/=+$/, "")).toBe(hash);
  }
}, 60_000);

test.each<[string, string, readonly string[], number, RegExp]>([
  ["an empty password", "\n", ["alice"], 1, /the password is empty/],
  ["two lines", "one\ntwo\n", ["alice"], 1, /more than one line/],
  ["a control character", "a\u0007b", ["alice"], 1, /control character/],
  ["a long password", "x".repeat(2_000), ["alice"], 1, /more than 1024 bytes/],
  ["a name with a colon", "x", ["a:b"], 1, /no colon/],
  ["a comment as a name", "x", ["#a"], 1, /no # at its start/],
  ["a password as an argument", "", ["alice", "hunter2"], 2, /too many arguments/],
  ["another algorithm", "x", ["--algorithm", "md5"], 2, /Allowed choices are scrypt, argon2id/],
])("%s is refused", async (_, input, args, expected, message) => {
  const { status, out, err } = await portico(input, ...args);
  expect({ status, out }).toEqual({ status: expected, out: "" });
  expect(err).toMatch(message);
});

test("a terminal shows nothing of the password, and asks twice", async () => {
  const terminal = (typed: readonly string[]) => {
    const line = [process.execPath, ...COMMAND, "alice"].map((word) => `'${word}'`).join(" ");
    const child = spawn("script", ["-qec", line, "/dev/null"]);
    const keys = [...typed];
    let shown = "";
    child.stdout.on("data", (chunk: Buffer) => {
      shown += chunk.toString();
      if (/(?:Password|Again): $/.test(shown)) child.stdin.write(keys.shift() ?? "\u0003");
    });
    return new Promise<string>((resolve) => child.on("close", () => resolve(shown)));
  };
  const [same, different, cancelled] = await Promise.all([
    terminal(["hunterx\u007f2\r", "hunter2\r"]),
    terminal(["hunter2\r", "hunter3\r"]),
    terminal(["hunter2\u0003"]),
  ]);
  expect(same).toMatch(/^Password: \r\nAgain: \r\nalice:\$scrypt\$ln=15,r=8,p=3\$\S+\r\n$/);
  expect(different).toMatch(/the two passwords differ/);
  expect(cancelled).not.toMatch(/scrypt/);
  expect(same + different + cancelled).not.toMatch(/hunter/);
}, 60_000);
