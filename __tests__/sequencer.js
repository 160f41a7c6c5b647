const Sequencer = require("@jest/test-sequencer").default;

/** Suites of a quarter of a minute and more. A clean checkout knows no durations, and one of these at the end would run alone. */
const LONG = [
  "__tests__/runtime/upgrade",
  "proof/package/package",
  "proof/acme/failures",
  "__tests__/runtime/memoryBudgets",
  "__tests__/runtime/certificates",
  "__tests__/activation/kill",
  "proof/nginx/nginx",
  "proof/faults/faults",
  "proof/acme/frontEnd",
  "__tests__/runtime/lifecycle",
  "proof/terraform/apply",
  "__tests__/asOwner/attacks",
  "proof/application/application",
  "__tests__/activation/activation",
  "proof/terraform/lateValues",
  "__tests__/runtime/ticketKeys",
  "proof/acme/manyCertificates",
  "proof/hostile/memory",
  "proof/demo/demo",
  "proof/terraform/localActivation",
  "proof/transfer/largeTransfer",
];

/** The long suites first, the others as jest orders them. */
module.exports = class extends Sequencer {
  sort(tests) {
    const rank = ({ path }) => {
      const at = LONG.findIndex((name) => path.endsWith(`/${name}.test.ts`));
      return at < 0 ? LONG.length : at;
    };
    return super.sort(tests).toSorted((a, b) => rank(a) - rank(b));
  }
};
