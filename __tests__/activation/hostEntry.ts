/*
 * What runs inside a `WholeHost`: with arguments the command line, else what answers calls. Most starts are children of
 * `asOwner`, which need next to nothing of either.
 */
if (process.argv.length > 2) void import("../../src/cli/main.js");
else void import("./hostCalls.js");
