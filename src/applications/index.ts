export * from "./definition.js";
export * from "./fileSync.js";
export * from "./fileSyncExpectations.js";
export * from "./fileSyncSettings.js";
export * from "./frontEndExpectations.js";
