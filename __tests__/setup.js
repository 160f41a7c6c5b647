// The import alone brings only types; the matchers of cdktf exist after this call.
const { Testing } = require("cdktf");
Testing.setupJest();

require("fast-check").configureGlobal({ seed: Number(process.env.PORTICO_SEED) });

// Element by element, as Jest compares typed arrays, megabytes take seconds.
expect.addEqualityTesters([(a, b) => (Buffer.isBuffer(a) && Buffer.isBuffer(b) ? a.equals(b) : undefined)]);
