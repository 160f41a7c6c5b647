import { closeSync, openSync, readSync } from "node:fs";
import type { Machine } from "../render/index.js";

/** The processor that a program is for, by its ELF header (elf(5)); undefined if it is none that is known. */
export function machineOf(program: string): Machine | undefined {
  const header = Buffer.alloc(20);
  const fd = openSync(program, "r");
  try {
    readSync(fd, header, 0, header.length, 0);
  } finally {
    closeSync(fd);
  }
  return header.toString("latin1", 0, 4) === "\x7fELF" ? MACHINES.get(header.readUInt16LE(18)) : undefined;
}

/** `EM_X86_64` and `EM_AARCH64`. */
const MACHINES: ReadonlyMap<number, Machine> = new Map([
  [62, "x86_64"],
  [183, "aarch64"],
]);
