import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { type FileHandle, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Address and credentials of the application's database. */
export interface DatabaseAccess {
  readonly host: string;
  readonly port: number;
  readonly name: string;
  readonly user: string;
  /** The database is queried only with a password or an option file. */
  readonly password?: string;
  /** File of the client's own options that has the password (`[client]`, `password=…`). */
  readonly optionFile?: string;
  /**
   * Time for connection and response together. Milliseconds.
   * @default 10000
   */
  readonly timeoutMs?: number;
}

/** A setting that the database has a value for; it has priority over the files (service 2.2). */
export interface Override {
  readonly item: string;
  readonly stored: StoredValue;
}

/** The overrides in the database, or why it was not queried. */
export type Overrides =
  | { readonly looked: true; readonly overrides: readonly Override[] }
  | { readonly looked: false; readonly why: string };

/** How much of the client's own message is passed on. */
const SAID_MAX = 400;

/** Hexadecimal, so that line ends and the client's encoding do not matter. */
const queryFor = (names: readonly string[]): string => `START TRANSACTION READ ONLY;
SELECT constance_key, HEX(value) FROM constance_config WHERE constance_key IN ('${names.join("','")}')`;

/**
 * Asks the application's database for settings that were changed in the web interface, by the host's own command-line
 * client. The password is in no argument, environment variable or file that others can see. Reads only; never throws.
 *
 * @param names of items of a deployment, whose schema leaves no quote in them
 */
export async function readOverrides(access: DatabaseAccess, names: readonly string[]): Promise<Overrides> {
  if (names.length === 0) return { looked: false, why: "no item of the deployment is marked as `stored`" };
  if (access.password === undefined && access.optionFile === undefined) {
    return { looked: false, why: "no password was given" };
  }
  try {
    for (const client of ["mariadb", "mysql"]) {
      const response = await ask(client, access, names);
      if (response !== "missing") return response;
    }
    return { looked: false, why: "neither the client mariadb nor mysql is installed here" };
  } catch (error) {
    return { looked: false, why: (error as Error).message };
  }
}

async function ask(
  client: string,
  access: DatabaseAccess,
  names: readonly string[],
): Promise<Overrides | "missing"> {
  if (access.optionFile !== undefined) return runClient(client, access, names, access.optionFile);
  const options = await secretOptions(access.password!);
  try {
    return await runClient(client, access, names, "/dev/fd/3", options.fd);
  } finally {
    await options.close();
  }
}

/**
 * The client's options in a file without a name: no other process can open it, and nothing of it stays, even if we are
 * killed.
 */
async function secretOptions(password: string): Promise<FileHandle> {
  const path = join(tmpdir(), `portico-${randomBytes(12).toString("hex")}`);
  const file = await open(path, "wx+", 0o600);
  await rm(path);
  const quoted = password.replace(/["\\]/g, "\\$&").replaceAll("\n", "\\n").replaceAll("\r", "\\r");
  await file.writeFile(`[client]\npassword="${quoted}"\n`);
  return file;
}

function runClient(
  client: string,
  access: DatabaseAccess,
  names: readonly string[],
  optionFile: string,
  fd?: number,
): Promise<Overrides | "missing"> {
  const { host, port, name, user, password, timeoutMs = 10_000 } = access;
  const args = [
    `--defaults-extra-file=${optionFile}`,
    `--host=${host}`,
    `--port=${port}`,
    `--user=${user}`,
    `--database=${name}`,
    `--connect-timeout=${Math.ceil(timeoutMs / 1000)}`,
    "--batch",
    "--skip-column-names",
    // Any program on that port could ask for the password in clear, or for one of our files. So only the methods built
    // into the client are used, which prove knowledge of the password without sending it.
    "--plugin-dir=/dev/null",
    "--loose-secure-auth",
    "--local-infile=0",
    // Nor does the client collect a response that has no end.
    "--quick",
    `--execute=${queryFor(names)}`,
  ];
  return new Promise((resolve) => {
    // The client gets no home, because a password in ~/.my.cnf would take priority over the given one.
    const env = { PATH: process.env["PATH"], LANG: "C.UTF-8", HOME: "/nonexistent" };
    const stdio = ["ignore", "pipe", "pipe", ...(fd === undefined ? [] : [fd])] as const;
    const child = spawn(client, args, { env, stdio: [...stdio] });
    // Not spawn's own `timeout`: its timer outlives a client that is not installed.
    const timer = setTimeout(() => child.kill("SIGKILL"), timeoutMs);
    const done = (outcome: Overrides | "missing"): void => {
      clearTimeout(timer);
      resolve(outcome);
    };
    let [out, err] = ["", ""];
    child.stdout!.on("data", (chunk: Buffer) => {
      out += chunk.toString("latin1");
      if (out.length <= RESPONSE_BYTES_MAX) return;
      child.kill("SIGKILL");
      done({ looked: false, why: "the response is too long" });
    });
    child.stderr!.on("data", (chunk: Buffer) => (err += chunk.toString("utf8")));
    child.on("error", (error: NodeJS.ErrnoException) =>
      done(error.code === "ENOENT" ? "missing" : { looked: false, why: error.message }),
    );
    child.on("close", (code, signal) => {
      if (code === 0) return done({ looked: true, overrides: parseRows(out, names) });
      if (signal !== null) return done({ looked: false, why: `no response within ${timeoutMs / 1000} s` });
      const said = err.trim().replaceAll("\n", "; ").slice(0, SAID_MAX);
      done({ looked: false, why: whyNot(without(said, password), name, client) });
    });
  });
}

/** The limit of a response, which has settings in hexadecimal. */
const RESPONSE_BYTES_MAX = 1 << 20;

function parseRows(out: string, names: readonly string[]): Override[] {
  return out
    .split("\n")
    .map((line) => line.split("\t"))
    .flatMap(([key, hex]) => {
      const item = names.find((each) => each === key);
      if (item === undefined || hex === undefined || hex === "NULL") return [];
      return [{ item, stored: readStoredValue(Buffer.from(hex, "hex")) }];
    });
}

/** The server's own error, with an explanation where that helps. */
function whyNot(said: string, name: string, client: string): string {
  if (/ERROR (?:2059|2061|1251)/.test(said) || said.includes("/dev/null")) {
    return "the server requests the password by a method that would reveal it to any process that listens on this port; give the database user mysql_native_password, or `socket` and a user without a password in an option file";
  }
  if (said.includes("ERROR 1146")) return `the database ${name} has no table constance_config`;
  return `${client} says: ${said === "" ? "nothing" : said}`;
}

function without(text: string, secret: string | undefined): string {
  return secret === undefined || secret === "" ? text : text.replaceAll(secret, "…");
}
/** A setting as it is stored in the application's database. */
type StoredValue =
  | { readonly kind: "text"; readonly text: string }
  /** Something is stored that cannot be read here. */
  | { readonly kind: "unreadable" };

/**
 * Reads a stored setting: plain text, JSON (also the envelope `{"__type__": …, "__value__": …}`), or a pickled string
 * in Base64. Nothing is ever executed: of the pickle format, only a single string is understood.
 */
export function readStoredValue(stored: Buffer): StoredValue {
  const text = stored.toString("utf8");
  const value = fromJson(text) ?? fromPickle(text) ?? (isUrl(text) ? text : undefined);
  return value === undefined ? { kind: "unreadable" } : { kind: "text", text: value };
}

function isUrl(text: string): boolean {
  return /^(?:https?:\/\/|\/)[!-~]*$/.test(text) || text === "";
}

function fromJson(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const inner =
      typeof value === "object" && value !== null && "__value__" in value ? value.__value__ : value;
    return typeof inner === "string" ? inner : undefined;
  } catch {
    return undefined;
  }
}

/** Opcodes of Python's pickletools that occur in the pickle of one string. */
const OPCODE = {
  stop: 0x2e,
  proto: 0x80,
  frame: 0x95,
  unicode: 0x56,
  binUnicode: 0x58,
  shortBinUnicode: 0x8c,
};

function fromPickle(text: string): string | undefined {
  if (/[^A-Za-z0-9/+=\s]/.test(text)) return undefined;
  const bytes = Buffer.from(text, "base64");
  let at = bytes[0] === OPCODE.proto ? 2 : 0;
  if (bytes[at] === OPCODE.frame) at += 9;
  const end = bytes.length - 1;
  if (at + 2 > end || bytes[end] !== OPCODE.stop) return undefined;
  switch (bytes[at]) {
    case OPCODE.shortBinUnicode:
      return stringAt(bytes, at + 2, bytes[at + 1]!);
    case OPCODE.binUnicode:
      return at + 5 > end ? undefined : stringAt(bytes, at + 5, bytes.readUInt32LE(at + 1));
    case OPCODE.unicode: {
      const line = bytes.subarray(at + 1, bytes.indexOf("\n", at)).toString("latin1");
      return isUrl(line) && !line.includes("\\") ? line : undefined;
    }
    default:
      return undefined;
  }
}

/** The string, if only its memo and the end follow. */
function stringAt(bytes: Buffer, from: number, length: number): string | undefined {
  const rest = bytes.subarray(from + length).toString("latin1");
  // MEMOIZE, BINPUT, LONG_BINPUT, and STOP.
  const bare = /^(?:\x94|q[^]|r[^]{4})?\.$/.test(rest);
  return bare ? bytes.subarray(from, from + length).toString("utf8") : undefined;
}
