const Sequencer = require("@jest/test-sequencer").default;

/**
 * Suites of some ten seconds and more. A clean checkout knows no durations, and one of these at the end would run alone.
 * First some that mostly wait, with two that do not, and with the checks beside Jest (build/test.ts).
 */
const LONG = [
  "__tests__/runtime/certificates",
  "proof/acme/failures",
  "__tests__/runtime/ticketKeys",
  "__tests__/runtime/mountedSecret",
  "__tests__/activation/wholeHost",
  "proof/package/package",
  "proof/faults/faults",
  "__tests__/activation/activation",
  "proof/acme/certificates",
  "proof/acme/holder",
  "__tests__/runtime/upgrade",
  "__tests__/runtime/memoryBudgets",
  "__tests__/activation/kill",
  "proof/acme/manyCertificates",
  "__tests__/asOwner/attacks",
  "proof/nginx/nginx",
  "proof/acme/frontEnd",
  "proof/application/application",
  "__tests__/runtime/health",
  "proof/hostile/memory",
  "proof/terraform/lateValues",
  "__tests__/runtime/lifecycle",
  "__tests__/runtime/regressions",
  "proof/hostile/answers",
  "__tests__/runtime/http2Connection",
  "__tests__/runtime/faults",
  "proof/demo/demo",
  "__tests__/runtime/drain",
  "proof/hostile/floods",
  "__tests__/runtime/proxying",
  "proof/acme/served",
  "__tests__/runtime/proxyProtocol",
  "proof/hostile/smuggling",
  "proof/terraform/localActivation",
  "__tests__/runtime/logStreams",
  "proof/transfer/largeTransfer",
  // On real hosts: minutes each.
  "proof/hosts/cutOffActivation",
  "proof/hosts/doctor",
  "proof/hosts/cutOffDestroy",
  "proof/hosts/activation",
  "proof/hosts/network",
  "proof/hosts/pairCertificates",
  "proof/hosts/certificates",
  "proof/hosts/breakages",
  "proof/hosts/deploy",
  "proof/hosts/units",
  "proof/hosts/noRequestLost",
  "proof/hosts/pair",
  "proof/hosts/guide",
  "proof/hosts/harness",
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
