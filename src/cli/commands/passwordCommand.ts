import * as crypto from "node:crypto";
import type { ReadStream } from "node:tty";
import { Option, type Command } from "commander";
import { hashText, type PhcHash, USER_NAME } from "../../model/serving.js";
import { deriveKey } from "../../runtime/dispatch/passwords.js";
import { type CommandOutput, EXIT } from "../output.js";

interface PasswordFlags {
  algorithm: PhcHash["kind"];
}

export function addPassword(program: Command, output: CommandOutput, done: (code: number) => void): void {
  program
    .command("password")
    .description("make a line for a file of users (`basic` of an access policy) from a password")
    .argument("[NAME]", "name of the user; without it, only the hash is printed")
    .addOption(
      new Option("--algorithm <NAME>", "how the password is hashed; argon2id needs Node.js 24.7 or newer")
        .choices(["scrypt", "argon2id"])
        .default("scrypt"),
    )
    .addHelpText(
      "after",
      `
The command asks for the password on the terminal, twice, and shows nothing of it. If standard input is no terminal, its
first line is the password. A password is never an argument: other users see arguments, and shells store them.

Exit codes: 0 the line is on standard output, 1 it could not be made, 2 wrong usage.

Examples:
  portico password alice >> /etc/portico/users
  pwgen 24 1 | tee /dev/stderr | portico password alice >> /etc/portico/users`,
    )
    .action(async (name: string | undefined, flags: PasswordFlags) =>
      done(await password(name, flags, output)),
    );
}

async function password(
  name: string | undefined,
  { algorithm }: PasswordFlags,
  output: CommandOutput,
): Promise<number> {
  const user = name?.normalize("NFC");
  if (user !== undefined && (!USER_NAME.test(user) || user.startsWith("#")))
    return wrong(
      output,
      "a name has 1 to 255 characters, no colon or control character, and no # at its start",
    );
  if (algorithm === "argon2id" && !("argon2" in crypto))
    return wrong(output, `Node.js ${process.versions.node} has no argon2id: use 24.7 or newer, or scrypt`);
  const given = await (process.stdin.isTTY ? asked(process.stdin, output) : firstLine());
  if (typeof given !== "string") return wrong(output, given.why);
  const text = given.normalize("NFC");
  if (text === "") return wrong(output, "the password is empty");
  if (/\p{Cc}/u.test(text)) return wrong(output, "the password has a control character");
  if (Buffer.byteLength(text) > BYTES_MAX)
    return wrong(output, `the password has more than ${BYTES_MAX} bytes`);
  const line = hashText(await hashOf(text, algorithm));
  output.out(user === undefined ? `${line}\n` : `${user}:${line}\n`);
  return EXIT.ok;
}

/** What clients may send, with the name of a user, is not much more. */
const BYTES_MAX = 1_024;

function wrong(output: CommandOutput, why: string): number {
  output.err(`error: ${why}\n`);
  return EXIT.failed;
}

/** Parameters as OWASP recommends them for less memory than usual: a proxy verifies several at a time. */
const COSTS = {
  scrypt: { kind: "scrypt", ln: 15, r: 8, p: 3 },
  argon2id: { kind: "argon2id", memoryKib: 19_456, passes: 2, parallelism: 1 },
} as const;

async function hashOf(text: string, algorithm: PhcHash["kind"]): Promise<PhcHash> {
  const by = { ...COSTS[algorithm], salt: unpadded(crypto.randomBytes(16)) };
  const key = await new Promise<Buffer>((resolve, reject) => {
    deriveKey(by, text, 32, (error, derived) => (error === null ? resolve(derived) : reject(error)));
  });
  return { ...by, hash: unpadded(key) };
}

const unpadded = (bytes: Buffer): string => bytes.toString("base64").replace(/=+$/, "");

type Given = string | { readonly why: string };

async function firstLine(): Promise<Given> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    parts.push(chunk);
    length += chunk.length;
    if (length > 64 * 1024) break;
  }
  const [line, ...others] = Buffer.concat(parts).toString("utf8").split(/\r?\n/) as [string, ...string[]];
  return others.join("") === "" ? line : { why: "standard input has more than one line" };
}

async function asked(terminal: ReadStream, output: CommandOutput): Promise<Given> {
  const first = await typed(terminal, output, "Password: ");
  if (first === undefined) return { why: "cancelled" };
  const again = await typed(terminal, output, "Again: ");
  if (again === undefined) return { why: "cancelled" };
  return first === again ? first : { why: "the two passwords differ" };
}

/** A line that the terminal does not show; undefined if it was cancelled. */
function typed(terminal: ReadStream, output: CommandOutput, prompt: string): Promise<string | undefined> {
  terminal.setRawMode(true);
  output.err(prompt);
  return new Promise((resolve) => {
    let text = "";
    const end = (result: string | undefined): void => {
      terminal.off("data", onData).off("end", onEnd).pause();
      terminal.setRawMode(false);
      output.err("\n");
      resolve(result);
    };
    const onEnd = (): void => end(undefined);
    const onData = (data: string): void => {
      for (const char of data) {
        if (char === "\r" || char === "\n") return end(text);
        // Ctrl-C and Ctrl-D.
        if (char === "\u0003" || char === "\u0004") return end(undefined);
        if (char === "\u007f" || char === "\b") text = [...text].slice(0, -1).join("");
        else text += char;
      }
    };
    terminal.setEncoding("utf8").on("data", onData).on("end", onEnd).resume();
  });
}
