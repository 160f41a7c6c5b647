const { chmodSync, mkdtempSync } = require("node:fs");
const { tmpdir } = require("node:os");
const { join } = require("node:path");

/** Before each run: a folder for what its tests share (testkit/sharedFile.ts). Some of it is for other users. */
module.exports = () => {
  process.env.PORTICO_RUN_FOLDER = mkdtempSync(join(tmpdir(), "portico-run-"));
  chmodSync(process.env.PORTICO_RUN_FOLDER, 0o755);
};
