/**
 * The release, as `Server` shows it if `versionTokens` is on.
 *
 * A constant, because the three ways this code runs (from source, compiled, bundled into one file) have no path to
 * `package.json` in common. `npm version` writes it here, and a test keeps the two the same.
 */
export const VERSION = "0.1.0";
