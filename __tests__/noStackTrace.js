// In place of what cdktf and constructs keep for each token and each piece of metadata: the whole stack, as text. Making
// it costs a third of the time of a synthesis under Jest, and no test looks at it. The second name is cdktn's.
exports.captureStackTrace = () => [];
exports.captureCreationStack = () => [];
