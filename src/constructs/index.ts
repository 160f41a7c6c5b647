export type {
  AcmeDnsOptions,
  AcmeOptions,
  DnsProgramOptions,
  DnsServerOptions,
  DnsUpdateOptions,
  DnsWaitOptions,
  ExternalAccountBinding,
} from "./acme.js";
export * from "./action.js";
export * from "./activation.js";
export type * from "./activationOptions.js";
export * from "./application.js";
export type { CustomApplication } from "./customApplication.js";
export * from "./containerProxy.js";
export type { DailyDoctor } from "./dailyDoctor.js";
export type {
  ApplicationUnits,
  FileSyncActivationProps,
  SettingsEditing,
} from "./fileSync/activationProps.js";
export * from "./fileSync/daemons.js";
export type {
  ApplicationAction,
  ApplicationClients,
  ApplicationDefinition,
  ApplicationPart,
  ApplicationRoute,
  ApplicationSettingsValues,
  ComposeOptions,
  FileSyncPaths,
  Liveness,
  LogIn,
  MediaDirectories,
  NextcloudOptions,
  NextcloudPart,
  NextcloudRoute,
  Office,
  OfficeRoute,
  PublicPlace,
  SeafileComponents,
  SeafileOptions,
  SeafilePart,
  SeafileRoute,
  SettingsCommand,
  SettingsFilePaths,
} from "../applications/index.js";
export * from "./fileSync/settings.js";
export type {
  ExpectedCause,
  ExpectedEvidence,
  ExpectedField,
  ExpectedLocation,
  ExpectedMember,
  ExpectedResponse,
} from "./expectation.js";
export { Delivery } from "./delivery/delivery.js";
export * from "./fileSync/fileSyncProxy.js";
export * from "./fileSync/frontEnd.js";
export type * from "./fileSync/members.js";
export type { SettingsTexts } from "./fileSync/settingsTexts.js";
export * from "./pair/frontEndPair.js";
export type { FrontEndPairProps, PairHostProps } from "./pair/props.js";
export type { FileSyncFrontEndProps } from "./fileSync/frontEndProps.js";
export type { FrontEndFirewallProps, FrontEndListeners } from "./frontEndParts.js";
export type * from "./errorPage.js";
export * from "./firewall.js";
export * from "./host.js";
export * from "./hostFile.js";
export * from "./listener.js";
export { type LocalDeliveryOptions } from "./delivery/local.js";
export { type HttpsOptions, type ListenOptions, Mode, type PlainOptions, type TlsOptions } from "./mode.js";
export * from "./monitoring.js";
export * from "./network.js";
export * from "./notification.js";
export type { NodePlatform } from "./nodeDownload.js";
export * from "./nodeRuntime.js";
export type * from "./proxyInterfaces.js";
export * from "./proxyService.js";
export type * from "./proxySettings.js";
export * from "./reverseProxy.js";
export * from "./reverseProxyBase.js";
export { FILE_SYNC_RESPONSE_HEADERS, type HstsOptions, type ResponseHeaders } from "./responseHeaders.js";
export * from "./route.js";
export type { SshBastion, SshDeliveryOptions, SshLogin } from "./delivery/connection.js";
export type { SelfSignedOptions } from "./selfSignedOptions.js";
export * from "./systemdUnit.js";
export type { PrivateKey, SelfSignedCert } from "./providers/resources.js";
export { SelfSignedTls, TlsMaterial, type TlsFilePaths, type TlsFiles } from "./tlsMaterial.js";
export * from "./tlsPolicy.js";
export * from "./upstream.js";
export * from "./webFrontEnd.js";
export * from "./virtualServer.js";
// Types of the layer below that occur in props and members.
export {
  type AlertRulesInput,
  type AllowedPort,
  type Daemon,
  type DashboardInput,
  DEFAULT_HOST_PATHS,
  type HostPaths,
  type NetworkInterface,
  renderAlertRules,
  renderDashboard,
  type UnitCommand,
  type UnitDocument,
  type UnitSection,
  type UnitSectionName,
  type UnitSpecifiers,
  type UnitValue,
  type UnitVariable,
} from "../render/index.js";
