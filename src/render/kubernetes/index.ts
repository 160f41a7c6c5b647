export { quantities } from "./deployment.js";
export * from "./frontEnd.js";
export * from "./objects.js";
export * from "./providerBlocks.js";
