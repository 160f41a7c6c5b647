export type {
  AcmeDnsOptions,
  AcmeOptions,
  CloudflareDnsOptions,
  DesecDnsOptions,
  DnsProgramOptions,
  DnsServerOptions,
  DnsUpdateOptions,
  DuckDnsOptions,
  ExternalAccountBinding,
  HetznerDnsOptions,
} from "./acme.js";
export {
  Action,
  type ProxyOptions,
  type ForwardedOptions,
  type StaticFilesOptions,
  type RedirectOptions,
  type RespondOptions,
  type StatusOptions,
} from "./action.js";
export { Activation, type ActivationProps } from "./activation.js";
export type {
  DaemonUnit,
  CommandRule,
  DeploymentUnits,
  DatabaseConnection,
  ResponseProbe,
  ReplayGate,
  HostDescription,
  DescribedSettings,
  DescribedSettingsFile,
  IniSettingsFile,
  PythonSettingsFile,
  EnvSettingsFile,
  IniSettingsItem,
  PythonSettingsItem,
  EnvSettingsItem,
  ServedTree,
  DoctorRow,
  ExpectedNetwork,
} from "./activationOptions.js";
export {
  type ApplicationMembers,
  type SeafileUpstreams,
  type SeafileRoutes,
  type NextcloudUpstreams,
  type NextcloudRoutes,
  type FileSyncApplication,
  type OneServerApplication,
  type RedirectApplication,
  type StaticFilesApplication,
  Application,
} from "./application/application.js";
export type { CustomApplication } from "./application/customApplication.js";
export { ContainerProxy, type ContainerProxyProps, type ComposeFileOptions } from "./containerProxy.js";
export type { DailyDoctor, DoctorProps } from "./dailyDoctor.js";
export type { FrontEndActivationProps } from "./frontEnd/activationProps.js";
export type {
  ApplicationUnits,
  FileSyncDaemons,
  FileSyncOptions,
  FileSyncSettings,
} from "./application/fileSync.js";
export { ApplicationDaemons, type DaemonName, type ApplicationDaemonsProps } from "./application/daemons.js";
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
  MediaPermissions,
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
  PauseResponse,
} from "../applications/index.js";
export {
  ApplicationSettings,
  type ApplicationSettingsProps,
  type FileServerListen,
} from "./application/settings.js";
export type {
  ExpectedCause,
  ExpectedEvidence,
  ExpectedField,
  ExpectedLocation,
  ExpectedMember,
  ExpectedResponse,
} from "./expectation.js";
export { Delivery } from "./delivery/delivery.js";
export type { DeliveryOptions } from "./delivery/way.js";
export { ContainerFrontEnd, type ContainerFrontEndProps } from "./frontEnd/containerFrontEnd.js";
export { FrontEnd } from "./frontEnd/frontEnd.js";
export type { FrontEndProps } from "./frontEnd/frontEndProps.js";
export type { PathApplication, PathApplicationProps } from "./frontEnd/pathApplication.js";
export type { Site } from "./frontEnd/site.js";
export type { OwnSiteOptions, SiteOptions, SiteProps } from "./frontEnd/siteProps.js";
export type { SitesOfProxy } from "./frontEnd/sitesOfProxy.js";
export type {
  FileSyncUpstreams,
  FileSyncRoutes,
  UpstreamOverrides,
  RouteResponseFields,
} from "./application/members.js";
export type { SettingsTexts } from "./application/settingsTexts.js";
export { FrontEndPair } from "./pair/frontEndPair.js";
export type { FrontEndPairProps, PairHostProps } from "./pair/props.js";
export type { FileSyncPathProps } from "./application/paths.js";
export type { FrontEndFirewallProps, FrontEndListeners } from "./frontEnd/parts.js";
export type {
  ErrorPage,
  ErrorPageStatus,
  ErrorPageStatuses,
  ErrorPageText,
  ErrorPageFile,
} from "./errorPage.js";
export { Firewall, type Ports, type FirewallProps } from "./firewall.js";
export { type IHost, Host, type HostProps } from "./host.js";
export { HostFile, type HostFileProps } from "./hostFile.js";
export {
  type IListener,
  Listener,
  type ListenerProps,
  type ListenerTls,
  type TlsSettings,
  type ProxyProtocolOptions,
} from "./listener.js";
export { type LocalDeliveryOptions } from "./delivery/local.js";
export { type HttpsOptions, type ListenOptions, Mode, type PlainOptions, type TlsOptions } from "./mode.js";
export {
  type MonitoringFileProps,
  type AlertRulesProps,
  type MetricsDashboardProps,
  AlertRules,
  MetricsDashboard,
} from "./monitoring.js";
export { StaticNetwork, type StaticNetworkProps } from "./network.js";
export {
  type WebhookOptions,
  type NtfyOptions,
  type GotifyOptions,
  type HealthcheckOptions,
  type WebhookTarget,
  type NtfyTarget,
  type GotifyTarget,
  type HealthcheckTarget,
  type NotificationTarget,
  Notification,
  type ProxyNotifications,
} from "./notification.js";
export type { NodePlatform } from "./nodeDownload.js";
export { NodeRuntime, type PinnedNodeOptions } from "./nodeRuntime.js";
export type { IProxy, IReverseProxy, IProxyService, IContainerProxy } from "./proxyInterfaces.js";
export { ProxyService, type ProxyServiceProps } from "./proxyService.js";
export type {
  ProxySettings,
  ProxyRequestId,
  ProxyLimits,
  ProxyTimeouts,
  ProxyMaintenance,
  HealthListener,
  ProxyLogs,
  AccessLogFile,
  AccessLogFormat,
  AccessLogStream,
  ErrorLogStream,
  ErrorLogFile,
  SharedTicketKeys,
  MetricsAddress,
  MetricsSocket,
} from "./proxySettings.js";
export { ReverseProxy, type ReverseProxyProps } from "./reverseProxy.js";
export { ReverseProxyBase } from "./reverseProxyBase.js";
export { FILE_SYNC_RESPONSE_HEADERS, type HstsOptions, type ResponseHeaders } from "./responseHeaders.js";
export { Route, type RouteProps, type RouteChanges } from "./route.js";
export type { SshBastion, SshDeliveryOptions, SshLogin } from "./delivery/connection.js";
export type { SelfSignedOptions } from "./selfSignedOptions.js";
export { SystemdUnit, type SystemdUnitProps } from "./systemdUnit.js";
export type { PrivateKey, SelfSignedCert } from "./providers/resources.js";
export { SelfSignedTls, TlsMaterial, type TlsFilePaths, type TlsFiles } from "./tlsMaterial.js";
export { TlsPolicy, type FileSyncPolicyOptions, type TlsPolicyOptions } from "./tlsPolicy.js";
export {
  type IUpstream,
  Upstream,
  type UpstreamTls,
  type UpstreamServer,
  type UpstreamSticky,
  type UpstreamHealth,
  type UpstreamProps,
} from "./upstream.js";
export { type IVirtualServer, VirtualServer, type VirtualServerProps } from "./virtualServer.js";
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
  type ScrapeJob,
  type UnitCommand,
  type UnitDocument,
  type UnitSection,
  type UnitSectionName,
  type UnitSpecifiers,
  type UnitValue,
  type UnitVariable,
} from "../render/index.js";
