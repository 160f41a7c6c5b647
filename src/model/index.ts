export * from "./config.js";
export * from "./deployment.js";
export { parseConfig, parseConfigText } from "./parse.js";
export { configJsonSchema } from "./schema.js";
export * from "./serving.js";
