const { setFlagsFromString } = require("node:v8");

// Most of what tests run is run a few times: V8 would spend a sixth of their time on optimizing it. Node 24 has no such
// flag.
if (process.version.startsWith("v20.")) setFlagsFromString("--interrupt-budget=1000000");

// Element by element, as Jest compares typed arrays, megabytes take seconds.
expect.addEqualityTesters([(a, b) => (Buffer.isBuffer(a) && Buffer.isBuffer(b) ? a.equals(b) : undefined)]);
