import path from "node:path";

/** Where the repository is, and where what is built goes. */
export const ROOT = path.resolve(__dirname, "..");
export const DIST = path.join(ROOT, "dist");
export const BUNDLE = path.join(DIST, "portico.mjs");
/** The compiler of TypeScript 7: the same checks as the one that most users have, in a quarter of the time. */
export const NATIVE_TSC = path.join(ROOT, "node_modules/typescript-native/bin/tsc");
/** What it runs with: a quarter of its time would go into collecting garbage, and it ends soon. */
export const NATIVE_TSC_ENVIRONMENT = { GOGC: "off", GOMEMLIMIT: "2GiB" };
