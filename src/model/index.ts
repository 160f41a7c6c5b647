export * from "./actions/table.js";
export * from "./config/certificates.js";
export * from "./config/config.js";
export * from "./deployment.js";
export * from "./host/expect.js";
export type { DeploymentRow, EngineRow, Tree } from "./host/rows.js";
export {
  itemLabel,
  type DeploymentSettings,
  type EnvItem,
  type IniItem,
  type PythonItem,
  type SettingsFile,
  type SettingsItem,
  type StoredItem,
  storedItems,
} from "./host/settings.js";
export { parseConfig, parseConfigText } from "./config/parse.js";
export { listenerLedTo } from "./config/router.js";
export { configJsonSchema } from "./config/schema.js";
export * from "./serving.js";
