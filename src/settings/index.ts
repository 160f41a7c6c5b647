export { applyEdits, type PlannedFile, planSettings, type SettingsPlan } from "./settingsPlan.js";
export type { SettingsRole, SettingsSource } from "./settingsPlan.js";
export type { ItemFinding } from "./settingsEdit.js";
export type { Replaced } from "./settingsFiles.js";
export {
  type DatabaseAccess,
  type OverridableItem,
  type Override,
  type Overrides,
  readOverrides,
} from "./databaseOverrides.js";
