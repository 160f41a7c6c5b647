/**
 * Real Debian hosts for tests: `const host = await bootHost({ name: "files" })`, and `await host.stop()` in `afterAll`.
 * A host has systemd as process 1, sshd, and a network of its own; a second one does not see it.
 */
export { mustRun, type Result, type RunOptions } from "./commands.js";
export { bootHost, type HostOptions, type TestHost } from "./host.js";
export { FAIL2BAN_PACKAGES, PAIR_PACKAGES, type Release, releaseOfSuite } from "./image.js";
export { type CableEnd, Namespace } from "./namespace.js";
