const { join } = require("node:path");

const NO_STACK_TRACE = join(__dirname, "noStackTrace.js");

/**
 * Finds the module of an import. Jest asks once in each worker; what `moduleNameMapper` says, it looks up again for every
 * import of every suite.
 */
module.exports = (name, options) => {
  if (/^\.{1,2}\/(?:.*\/)?stack-trace$/.test(name)) return NO_STACK_TRACE;
  // Sources import with the extension they are compiled to.
  return options.defaultResolver(name.replace(/^(\.{1,2}\/.*)\.js(?:\?text)?$/, "$1"), options);
};
