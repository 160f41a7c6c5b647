const { execFileSync } = require("node:child_process");
const { randomInt } = require("node:crypto");

// All that is random in tests comes from one seed, the same in every worker: another one in each run, or the one given.
process.env.PORTICO_SEED ??= String(randomInt(1, 2 ** 31));
process.stderr.write(`PORTICO_SEED=${process.env.PORTICO_SEED}\n`);

// Memory that was given back shows at once in what is sent from it (src/runtime/sockets/memory.ts), in this process and in
// every proxy that a test starts.
process.env.PORTICO_FILL_SPENT_MEMORY = "1";

// Node reads these certificates whenever it starts, which takes twice as long as the rest of its start, and tests start
// it a thousand times. Only those on real hosts ask a registry.
if (process.env.PORTICO_TEST_HOSTS === undefined) delete process.env.NODE_EXTRA_CA_CERTS;

/** Tests that need more than Node: programs of these names, and root for mounts, namespaces and other users' files. */
const NEEDS = [
  { tests: "proof/acme/", programs: ["go", "openssl"], root: false },
  { tests: "proof/acme/dns.test.ts", programs: ["named", "curl"], root: false },
  { tests: "proof/acme/holder.test.ts", programs: ["ip"], root: true },
  { tests: "proof/activation/", programs: ["strace", "flock", "chattr"], root: true },
  { tests: "proof/application/", programs: ["python3", "chromedriver", "chromium"], root: false },
  { tests: "proof/application/", programs: ["python3", "chromedriver", "chromium"], root: false },
  { tests: "proof/asOwner/", programs: ["strace"], root: true },
  { tests: "proof/bans/fail2ban.test.ts", programs: ["fail2ban-regex"], root: false },
  { tests: "proof/balancer/", programs: ["haproxy", "nginx"], root: false },
  { tests: "proof/hostile/servedSecrets.test.ts", programs: ["python3"], root: true },
  { tests: "proof/metrics/prometheus.test.ts", programs: ["prometheus", "promtool"], root: false },
  { tests: "proof/quiesces/syncClient.test.ts", programs: ["nextcloudcmd"], root: false },
  { tests: "proof/servers/", programs: ["haproxy"], root: false },
  { tests: "proof/diagnosis/", programs: ["python3"], root: true },
  { tests: "proof/processes/container.test.ts", programs: ["unshare", "setpriv", "findmnt"], root: true },
  { tests: "proof/firewall/", programs: ["unshare", "ip", "nft"], root: true },
  { tests: "proof/monitoring/", programs: ["promtool"], root: false },
  { tests: "proof/package/image.test.ts", programs: ["podman", "runc"], root: true },
  { tests: "proof/package/compose.test.ts", programs: ["podman", "runc", "python3"], root: true },
  { tests: "proof/package/composeSites.test.ts", programs: ["go", "podman", "runc", "python3"], root: true },
  { tests: "proof/faults/", programs: ["prlimit", "unshare", "faketime"], root: true },
  { tests: "proof/terraform/", programs: ["terraform"], root: false },
  { tests: "proof/applicationSettings/", programs: ["python3", "mariadbd"], root: true },
  {
    tests: "proof/applications/real.test.ts",
    programs: ["python3", "rclone", "chromedriver", "chromium"],
    root: false,
  },
  { tests: "proof/applications/samples.test.ts", programs: ["nginx"], root: false },
  { tests: "proof/portals/", programs: ["go", "rclone", "chromedriver", "chromium"], root: false },
  { tests: "proof/status/", programs: ["chromedriver", "chromium"], root: false },
  { tests: "proof/upstreams/", programs: ["go", "python3", "apache2"], root: false },
];

const isHere = (program) => {
  try {
    execFileSync("sh", ["-c", `command -v ${program}`], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
};

/** Left out where something is missing, with a notice; in CI nothing is left out, and what is missing fails. */
function leftOut() {
  if (process.env.CI !== undefined) return [];
  const root = process.getuid?.() === 0;
  // What proof/prepare.ts could not make ready; it has said why.
  const unready = (process.env.PORTICO_LEFT_OUT ?? "").split("\n").filter((tests) => tests !== "");
  for (const tests of unready) process.stderr.write(`${tests} is left out: what it needs is not ready\n`);
  const lacking = NEEDS.flatMap(({ tests, programs, root: needsRoot }) => {
    const missing = [
      ...(needsRoot && !root ? ["root"] : []),
      ...programs.filter((program) => !isHere(program)),
    ];
    if (missing.length === 0) return [];
    process.stderr.write(`${tests} is left out: it needs ${missing.join(", ")}\n`);
    return [tests];
  });
  return [...unready, ...lacking].map((tests) => `<rootDir>/${tests}`);
}

/** @type {import('jest').Config} */
module.exports = {
  testEnvironment: "<rootDir>/__tests__/environment.js",
  roots: ["<rootDir>/__tests__", "<rootDir>/proof"],
  resolver: "<rootDir>/__tests__/resolver.js",
  testMatch: ["**/*.test.ts"],
  // Proofs take minutes and need more than Node: only those that an argument names (`npm test -- proof/`). Real hosts:
  // `npm run test:hosts`.
  testPathIgnorePatterns: [
    "/node_modules/",
    ...(process.argv.slice(2).some((argument) => argument.includes("proof")) ? [] : ["<rootDir>/proof/"]),
    ...(process.env.PORTICO_TEST_HOSTS === undefined ? ["<rootDir>/proof/hosts/"] : []),
    ...leftOut(),
  ],
  transform: {
    // A thread, which is imported as text.
    "/bcryptThread\\.ts$": "<rootDir>/__tests__/threadText.js",
    "^.+\\.ts$": ["@swc/jest", { jsc: { target: "es2022", parser: { syntax: "typescript" } } }],
  },
  setupFilesAfterEnv: ["<rootDir>/__tests__/setup.js"],
  globalSetup: "<rootDir>/__tests__/runFolder.js",
  globalTeardown: "<rootDir>/__tests__/endOfRun.js",
  testSequencer: "<rootDir>/__tests__/sequencer.js",
  // Most tests wait for sockets and processes: as many workers as cores would leave them idle for a third of the time.
  maxWorkers: Math.max(6, require("node:os").availableParallelism() - 1),
  // No measure of speed, but the end of what hangs: a test that is stopped while it works disturbs those after it, and a
  // busy machine takes twenty times as long.
  testTimeout: 300_000,
};
