const vm = require("node:vm");
const { TestEnvironment } = require("jest-environment-node");

const { compileFunction } = vm;
const compiled = new Map();

// Each suite loads its modules anew, and Jest compiles them anew, although most suites load the same: that is a quarter of
// the time of a small suite. A script is compiled once in a worker and runs in the context of each suite.
vm.compileFunction = (code, parameters, options) => {
  const { filename, parsingContext } = options;
  if (parsingContext === undefined) return compileFunction(code, parameters, options);
  let known = compiled.get(filename);
  if (known?.code !== code) {
    const head = `(function (${parameters.join(", ")}) {`;
    known = { code, script: new vm.Script(`${head}${code}\n})`, { filename, columnOffset: -head.length }) };
    compiled.set(filename, known);
  }
  return known.script.runInContext(parsingContext);
};

module.exports = TestEnvironment;
