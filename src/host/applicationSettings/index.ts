export { applyEdits, type PlannedFile, planSettings, revertChanges, type SettingsPlan } from "./plan.js";
export type { SettingsSource } from "./plan.js";
export type { ItemChange, ItemFinding, SettingsEditRecord } from "./edit.js";
export { readFound, replaceFiles, sweepBeside } from "./files.js";
export { type DatabaseAccess, type Override, type Overrides, readOverrides } from "./databaseOverrides.js";
