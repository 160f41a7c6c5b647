export {
  type Activated,
  activate,
  ActivationFailed,
  type ActivationOptions,
  formatPlan,
} from "./activate.js";
export { deactivate, type DeactivationOptions } from "./deactivate.js";
