const Sequencer = require("@jest/test-sequencer").default;

/**
 * Suites of some ten seconds and more. A clean checkout knows no durations, and one of these at the end would run alone.
 * Suites that mostly wait take turns with those that work: where several of the same kind meet, processors are idle first
 * and too few later. The checks beside Jest (build/test.ts) work at its start.
 */
const LONG = [
  "proof/processes/certificates",
  "proof/processes/lifecycle",
  "proof/acme/failures",
  "proof/application/application",
  "proof/activation/wholeHost",
  "proof/processes/ticketKeys",
  "proof/upstreams/transfers",
  "proof/upstreams/connections",
  "proof/package/package",
  "proof/processes/memoryBudgets",
  "proof/nginx/nginx",
  "proof/asOwner/attacks",
  "proof/faults/faults",
  "proof/terraform/lateValues",
  "proof/processes/upgrade",
  "proof/activation/activation",
  "proof/processes/health",
  "proof/acme/frontEnd",
  "proof/processes/mountedSecret",
  "proof/hostile/memory",
  "proof/activation/kill",
  "proof/demo/demo",
  "proof/acme/certificates",
  "proof/hostile/responses",
  "proof/acme/manyCertificates",
  "proof/processes/regressions",
  "proof/acme/holder",
  "proof/terraform/localActivation",
  "proof/hostile/smuggling",
  "__tests__/runtime/http2Connection",
  "proof/processes/faults",
  "proof/processes/drain",
  "proof/hostile/floods",
  "__tests__/runtime/proxying",
  "proof/acme/served",
  "__tests__/runtime/proxyProtocol",
  "proof/processes/logStreams",
  "proof/transfer/largeTransfer",
  // On real hosts: minutes each.
  "proof/hosts/deploy",
  "proof/hosts/activation",
  "proof/hosts/pair",
  "proof/hosts/breakages",
  "proof/hosts/breakagesAbove",
  "proof/hosts/doctor",
  "proof/hosts/cutOff",
  "proof/hosts/pairCertificates",
  "proof/hosts/certificates",
  "proof/hosts/noRequestLost",
  "proof/hosts/web",
  "proof/hosts/guide",
  "proof/hosts/units",
  "proof/hosts/network",
  "proof/hosts/unsupported",
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
