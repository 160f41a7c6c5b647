import { resolve } from "node:path";

/**
 * @internal The path of a file of the package. This module is in `src/constructs`, or in the one folder `dist/lib`: both
 * are two folders below the package's own.
 */
export const packageFile = (folder: "dist" | "monitoring", file: string): string =>
  resolve(__dirname, "../..", folder, file);
