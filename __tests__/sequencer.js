const Sequencer = require("@jest/test-sequencer").default;

/**
 * Suites of some ten seconds and more. A clean checkout knows no durations, and one of these at the end would run alone.
 * Suites that mostly wait take turns with those that work: where several of the same kind meet, processors are idle first
 * and too few later. The checks beside Jest (build/test.ts) work at its start.
 */
const LONG = [
  "__tests__/runtime/certificates",
  "__tests__/runtime/lifecycle",
  "proof/acme/failures",
  "proof/application/application",
  "__tests__/activation/wholeHost",
  "__tests__/runtime/ticketKeys",
  "proof/upstreams/transfers",
  "proof/upstreams/connections",
  "proof/package/package",
  "__tests__/runtime/memoryBudgets",
  "proof/nginx/nginx",
  "__tests__/asOwner/attacks",
  "proof/faults/faults",
  "proof/terraform/lateValues",
  "__tests__/runtime/upgrade",
  "__tests__/activation/activation",
  "__tests__/runtime/health",
  "proof/acme/frontEnd",
  "__tests__/runtime/mountedSecret",
  "proof/hostile/memory",
  "__tests__/activation/kill",
  "proof/demo/demo",
  "proof/acme/certificates",
  "proof/hostile/answers",
  "proof/acme/manyCertificates",
  "__tests__/runtime/regressions",
  "proof/acme/holder",
  "proof/terraform/localActivation",
  "proof/hostile/smuggling",
  "__tests__/runtime/http2Connection",
  "__tests__/runtime/faults",
  "__tests__/runtime/drain",
  "proof/hostile/floods",
  "__tests__/runtime/proxying",
  "proof/acme/served",
  "__tests__/runtime/proxyProtocol",
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
