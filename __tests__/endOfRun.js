const { rmSync } = require("node:fs");

/** After each run. */
module.exports = () => rmSync(process.env.PORTICO_RUN_FOLDER, { recursive: true, force: true });
