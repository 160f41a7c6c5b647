/**
 * The model without its parser: all that a process which serves needs of it. A worker gets its config parsed, and the
 * library that parses takes as long to load as everything else in a worker.
 */
export * from "./address.js";
export * from "./authority.js";
export type * from "./config.js";
export * from "./forwarding.js";
export { onePiece } from "./onePiece.js";
export * from "./problem.js";
export * from "./redirect.js";
export { Router } from "./router.js";
export * from "./serverName.js";
export * from "./status.js";
export * from "./target.js";
export * from "./tlsPolicy.js";
