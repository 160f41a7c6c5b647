export * from "./action.js";
export * from "./applicationSettings.js";
export { Delivery, type LocalDeliveryOptions } from "./delivery.js";
export * from "./fileSyncFrontEnd.js";
export type {
  FileSyncListeners,
  FileSyncRoutes,
  FileSyncUpstreamOverrides,
  FileSyncUpstreams,
} from "./fileSyncServers.js";
export * from "./host.js";
export * from "./hostFile.js";
export * from "./listener.js";
export { Mode, type PlainOptions, type TlsOptions } from "./mode.js";
export * from "./proxyService.js";
export * from "./reverseProxy.js";
export * from "./route.js";
export * from "./systemdUnit.js";
export {
  SelfSignedTls,
  TlsMaterial,
  type SelfSignedOptions,
  type TlsFilePaths,
  type TlsFiles,
} from "./tlsMaterial.js";
export * from "./tlsPolicy.js";
export * from "./upstream.js";
export * from "./virtualServer.js";
// Types of the layer below that stand in props and members.
export {
  type ApplicationSettingsValues,
  DEFAULT_HOST_PATHS,
  type HostPaths,
  type UnitCommand,
  type UnitDocument,
  type UnitSection,
  type UnitSpecifiers,
  type UnitValue,
  type UnitVariable,
} from "../render/index.js";
