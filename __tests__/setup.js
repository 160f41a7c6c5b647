// The import alone brings only types; the matchers of cdktf exist after this call.
const { Testing } = require("cdktf");
Testing.setupJest();

// A verdict of CI must not be one of chance. Elsewhere every run tries something else, and a failure names its seed.
if (process.env.CI !== undefined) process.env.PORTICO_SEED ??= "20261121";
if (process.env.PORTICO_SEED !== undefined)
  require("fast-check").configureGlobal({ seed: Number(process.env.PORTICO_SEED) });

// Element by element, as Jest compares typed arrays, megabytes take seconds.
expect.addEqualityTesters([(a, b) => (Buffer.isBuffer(a) && Buffer.isBuffer(b) ? a.equals(b) : undefined)]);
