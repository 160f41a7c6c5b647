const { setFlagsFromString } = require("node:v8");

// Most of what tests run is run a few times: V8 would spend much of their time on optimizing it, on Node 20 a sixth. Later
// versions count calls.
const FEWER_OPTIMIZED = process.version.startsWith("v20.")
  ? ["--interrupt-budget=1000000"]
  : ["--invocation-count-for-maglev=4000", "--invocation-count-for-turbofan=30000"];
for (const flag of FEWER_OPTIMIZED) setFlagsFromString(flag);

// Element by element, as Jest compares typed arrays, megabytes take seconds.
expect.addEqualityTesters([(a, b) => (Buffer.isBuffer(a) && Buffer.isBuffer(b) ? a.equals(b) : undefined)]);
