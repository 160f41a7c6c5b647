export { applyEdits, type PlannedFile, planSettings, revertChanges, type SettingsPlan } from "./plan.js";
export type { SettingsRole, SettingsSource } from "./plan.js";
export type { ItemChange, ItemFinding } from "./edit.js";
export { readFound, replaceFiles, sweepBeside } from "./files.js";
export {
  type DatabaseAccess,
  type OverridableItem,
  type Override,
  type Overrides,
  readOverrides,
} from "./databaseOverrides.js";
