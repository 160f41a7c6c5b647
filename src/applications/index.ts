export * from "./fileSyncExpectations.js";
export * from "./fileSyncSettings.js";
