const { appendFileSync, readFileSync } = require("node:fs");
const TestEnvironment = require("../../__tests__/environment.js");

const {
  PORTICO_REACHED: reached,
  PORTICO_CASES: casesFile,
  PORTICO_BEGUN: begun,
  PORTICO_USUAL: usualFile,
} = process.env;
/** Of a test in milliseconds, beyond ten times what it takes without a fault: one that waits in vain has noticed it. */
const PATIENCE_MS = 5_000;
/** As in jest.config.js. */
const DEFAULT_MS = 30_000;

/**
 * Says in the file of reached faults which test runs; runs only the tests that are asked for, and after the first of a
 * file that fails no other: it tells nothing more, and with a fault it often waits in vain. Says what has begun, as with a
 * fault some never end.
 */
module.exports = class extends TestEnvironment {
  constructor(config, context) {
    super(config, context);
    this.asked = casesFile && JSON.parse(readFileSync(casesFile, "utf8"))[context.testPath];
    this.usual = (usualFile && JSON.parse(readFileSync(usualFile, "utf8"))[context.testPath]) ?? {};
    this.hasFailed = false;
    this.path = context.testPath;
  }

  handleTestEvent({ name, test }, { rootDescribeBlock }) {
    if (name === "run_start" && this.asked) leaveOut(rootDescribeBlock, new Set(this.asked));
    if (name === "test_fn_failure" || name === "hook_failure") this.hasFailed = true;
    if (name === "test_start" && this.hasFailed) test.mode = "skip";
    const usual = name === "test_start" ? this.usual[fullName(test)] : undefined;
    if (usual !== undefined) test.timeout = Math.min(test.timeout ?? DEFAULT_MS, PATIENCE_MS + 10 * usual);
    if (begun && (name === "run_start" || name === "test_start"))
      appendFileSync(begun, `${JSON.stringify({ path: this.path, name: test && fullName(test) })}\n`);
    if (reached && (name === "test_start" || name === "test_done")) {
      this.global.__reached = new Map();
      appendFileSync(reached, `\n${JSON.stringify(name === "test_start" ? fullName(test) : "")}\n`);
    }
  }
};

function leaveOut({ children }, asked) {
  for (const child of children)
    if (child.type === "describeBlock") leaveOut(child, asked);
    else if (!asked.has(fullName(child))) child.mode = "skip";
}

const fullName = ({ name, parent }) => (parent?.parent ? `${fullName(parent)} ${name}` : name);
