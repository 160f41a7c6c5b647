const { buildSync } = require("esbuild");

/** A thread as its importer gets it (build/bundle.ts): a script with all that it imports. */
exports.process = (_source, path) => {
  const { outputFiles } = buildSync({
    entryPoints: [path],
    bundle: true,
    write: false,
    format: "cjs",
    platform: "node",
    target: "node20",
  });
  return { code: `exports.__esModule = true; exports.default = ${JSON.stringify(outputFiles[0].text)};` };
};
