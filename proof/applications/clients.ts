import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createReadStream, createWriteStream, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runUnseen } from "../../testkit/unseen.js";
import type { Application } from "../../src/constructs/index.js";
import { ask, type Seen } from "./ask.js";

/** What real applications are to tests, and their clients: a browser's requests, and rclone. */

/** Where one runs, and what the deployment tells it. */
export interface Running {
  /** Of the programs that were installed or built. */
  readonly programs: string;
  /** For its data. */
  readonly folder: string;
  /** Port of its web server on loopback. */
  readonly web: number;
  /** Ports of all its parts. */
  readonly ports: Readonly<Record<string, number>>;
  /** Public port: its origin is `https://localhost:PORT`. */
  readonly port: number;
  /** Items of the settings files that the deployment renders. */
  readonly settings: Readonly<Record<string, string>>;
}

export interface RealApplication {
  readonly title: string;
  readonly application: (directory: string) => Application;
  /** Programs in the folder that is given. */
  readonly needs: readonly string[];
  /** Commands with their environment: all but the last one end before the next begins. */
  readonly commands: (at: Running) => readonly (readonly string[])[];
  readonly env?: (at: Running) => Readonly<Record<string, string>>;
  /** Uses it as clients do. @returns what was seen, one line each */
  readonly use: (at: Running, bytes: number) => Promise<readonly string[]>;
}

export const HOST = "localhost";
export const USER = "admin";
export const PASSWORD = "Secret-1-of-this-test";
export const CREDENTIALS = { user: USER, password: PASSWORD };
export const origin = ({ port }: Running): string => `https://${HOST}:${port}`;

export const JSON_TYPE = { "Content-Type": "application/json" };
export const FORM = { "Content-Type": "application/x-www-form-urlencoded" };
export const RENAMED = "renamed ä 100%.bin";
const AS_USER = {
  Authorization: `Basic ${Buffer.from(`${USER}:${PASSWORD}`).toString("base64")}`,
};

/** As a browser does, with the port in `Host`. */
export const asked = (at: Running, ...request: Asked): Promise<Seen> =>
  ask(at.port, `${HOST}:${at.port}`, ...request);
type Asked = [method: string, path: string, more?: Parameters<typeof ask>[4]];

export const asUser = (at: Running, method: string, path: string, body = "", fields = {}): Promise<Seen> =>
  asked(at, method, path, { headers: { ...AS_USER, ...fields }, body });

export function sizeOf({ status, headers }: Seen, bytes: number): void {
  if (Number(headers["content-length"]) !== bytes) throw new Error(`a share link gives ${status}`);
}

/** rclone uploads a file, renames it, and reads it back. */
export async function filesByWebdav(
  at: Running,
  url: string,
  vendor: string,
  bytes: number,
): Promise<string[]> {
  const file = join(at.folder, "upload");
  await writeRandom(file, bytes);
  const config = join(at.folder, "rclone.conf");
  const pass = execFileSync("rclone", ["obscure", PASSWORD], { encoding: "utf8" }).trim();
  writeFileSync(
    config,
    `[it]\ntype = webdav\nurl = ${url}\nvendor = ${vendor}\nuser = ${USER}\npass = ${pass}\n`,
  );
  const rclone = (...args: readonly string[]): Promise<void> =>
    runUnseen("rclone", ["--config", config, "--no-check-certificate", "--retries", "1", ...args]);
  const start = performance.now();
  await rclone("copyto", file, "it:a folder/big.bin");
  const seconds = ((performance.now() - start) / 1_000).toFixed(1);
  await rclone("moveto", "it:a folder/big.bin", `it:${RENAMED}`);
  await rclone("copyto", `it:${RENAMED}`, `${file}.back`);
  const [there, back] = await Promise.all([file, `${file}.back`].map(digestOf));
  if (there !== back) throw new Error("what came back is not what went there");
  return [`rclone uploaded ${statSync(file).size} bytes in ${seconds} s, renamed the file, and got it back`];
}

async function writeRandom(file: string, bytes: number): Promise<void> {
  const piece = randomBytes(1_048_576);
  const out = createWriteStream(file);
  for (let left = bytes; left > 0; left -= piece.length)
    if (!out.write(left >= piece.length ? piece : piece.subarray(0, left))) await once(out, "drain");
  out.end();
  await once(out, "finish");
}

async function digestOf(file: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const piece of createReadStream(file)) hash.update(piece as Buffer);
  return hash.digest("hex");
}
