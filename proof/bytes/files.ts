import type { Pool } from "./pool.js";
import { SIZES } from "./sizes.js";

/** The files of the matrix: whole ones of each size, and two that parts are requested of. */

const LARGEST = Math.max(...SIZES);
/** A cache keeps the content of one of them. */
const RANGED = [400_000, LARGEST + 1_000];

/** Size of the file that a part of so many bytes is requested of. */
export const rangedBytes = (bytes: number): number => RANGED.find((size) => size > bytes)!;

/** Name of the file whose content, or whose part, has so many bytes. */
export const fileName = (bytes: number, isPart: boolean): string =>
  isPart ? `of-${rangedBytes(bytes)}` : `whole-${bytes}`;

/** Contents by name. A whole file begins at the byte of the pool that its size tells, the others at its first. */
export const filesOf = (pool: Pool): Record<string, Buffer> =>
  Object.fromEntries([
    ...SIZES.map((size) => [fileName(size, false), pool.part(size, size)] as const),
    ...RANGED.map((size) => [`of-${size}`, pool.part(0, size)] as const),
  ]);
