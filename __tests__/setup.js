// The import alone brings only types; the matchers of cdktf exist after this call.
const { Testing } = require("cdktf");
Testing.setupJest();
