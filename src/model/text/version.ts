/**
 * The release, as in the `Server` field with `versionTokens`.
 *
 * A constant, because source, compiled and bundled code have no common path to `package.json`. `npm version` writes
 * the constant; a test compares both.
 */
export const VERSION = "0.1.0";
