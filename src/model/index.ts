export * from "./address.js";
export * from "./config.js";
export { parseConfig, parseConfigText } from "./parse.js";
export * from "./problem.js";
export { Router } from "./router.js";
export { configJsonSchema } from "./schema.js";
export * from "./serverName.js";
export * from "./target.js";
export * from "./tlsPolicy.js";
