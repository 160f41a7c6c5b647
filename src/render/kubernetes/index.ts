export * from "./frontEnd.js";
export * from "./objects.js";
export * from "./providerBlocks.js";
