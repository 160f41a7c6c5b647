export {
  type Activated,
  activate,
  ActivationFailed,
  type ActivationOptions,
  formatPlan,
} from "./activate.js";
export { editByHand, planByHand, type PlannedEdits } from "./settingsEdits.js";
export { seeDrift } from "./drift.js";
export { canDetach, RecordWriter, runDetached } from "./detached.js";
export { lastingPrograms, type Programs, runningPrograms } from "./programs.js";
export { recoverHost } from "./recovery.js";
export { deactivate, type Deactivated, type DeactivationOptions } from "./deactivate.js";
export { missingRecordRoom } from "./room.js";
