import path from "node:path";

/** Where the repository is, and where what is built goes. */
export const ROOT = path.resolve(__dirname, "..");
export const DIST = path.join(ROOT, "dist");
export const BUNDLE = path.join(DIST, "portico.mjs");
