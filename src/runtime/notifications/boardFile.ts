import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import type { KeptBoard } from "./noticeBoard.js";

/** What was told, in a file: so that a process that is killed does not tell it all again. */

/** @returns undefined if there is no such file, or none that can be read */
export function readBoard(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return undefined;
  }
}

/** @returns why it could not be written, if so */
export function writeBoard(file: string, board: KeptBoard): string | undefined {
  const draft = `${file}.${process.pid}`;
  try {
    writeFileSync(draft, JSON.stringify(board), { mode: 0o600 });
    renameSync(draft, file);
    return undefined;
  } catch (error) {
    rmSync(draft, { force: true });
    return (error as Error).message;
  }
}
