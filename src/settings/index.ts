export {
  applyEdits,
  type PlannedFile,
  planSettings,
  revertChanges,
  type SettingsPlan,
} from "./settingsPlan.js";
export type { SettingsRole, SettingsSource } from "./settingsPlan.js";
export type { ItemChange, ItemFinding } from "./settingsEdit.js";
export { readFound, replaceFiles, sweepBeside } from "./settingsFiles.js";
export {
  type DatabaseAccess,
  type OverridableItem,
  type Override,
  type Overrides,
  readOverrides,
} from "./databaseOverrides.js";
