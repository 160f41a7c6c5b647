export * from "./applicationSettings.js";
export * from "./defaultPage.js";
export * from "./dhParameters.js";
export * from "./hostPaths.js";
export * from "./proxyConfig.js";
export * from "./proxyUnits.js";
export * from "./publicOrigin.js";
export * from "./systemdUnit.js";
