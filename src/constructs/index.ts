export type { PasswordGuard, PasswordGuardOption } from "./proxy/passwordGuard.js";
export type { ClientCertificate } from "./proxy/clientCertificate.js";
export {
  Access,
  type AccessOption,
  type AccessPolicy,
  type BasicAuthentication,
  type ForwardAuthentication,
  type PortalOptions,
} from "./proxy/access.js";
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
} from "./proxy/acme.js";
export {
  Action,
  type ProxyOptions,
  type ForwardedOptions,
  type StaticFilesOptions,
  type RedirectOptions,
  type RespondOptions,
  type StatusOptions,
} from "./proxy/action.js";
export { Activation, type ActivationProps } from "./service/activation.js";
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
} from "./host/activationOptions.js";
export {
  type ApplicationMembers,
  type SeafileUpstreams,
  type SeafileRoutes,
  type NextcloudUpstreams,
  type NextcloudRoutes,
  type FileSyncApplication,
  type OneServerApplication,
  type OneServerRoutes,
  type RedirectApplication,
  type StaticFilesApplication,
  type VaultwardenApplication,
  Application,
} from "./application/application.js";
export type { CustomApplication } from "./application/customApplication.js";
export { ContainerProxy, type ContainerProxyProps, type ComposeFileOptions } from "./proxy/containerProxy.js";
export { CrowdSec, type CrowdSecProps, Fail2ban, type Fail2banProps } from "./service/bans.js";
export type { DailyDoctor, DoctorProps } from "./service/dailyDoctor.js";
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
  GiteaOptions,
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
} from "./proxy/expectation.js";
export { Delivery } from "./delivery/delivery.js";
export type { DeliveryOptions } from "./delivery/way.js";
export { ContainerFrontEnd, type ContainerFrontEndProps } from "./frontEnd/containerFrontEnd.js";
export { FrontEnd } from "./frontEnd/frontEnd.js";
export type { FrontEndProps } from "./frontEnd/frontEndProps.js";
export type { PathApplication, PathApplicationProps } from "./frontEnd/pathApplication.js";
export type { Site } from "./frontEnd/site.js";
export type { FrontEndAccess, OwnSiteOptions, SiteOptions, SiteProps } from "./frontEnd/siteProps.js";
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
} from "./proxy/errorPage.js";
export { Firewall, type Ports, type FirewallProps } from "./service/firewall.js";
export { type IHost, Host, type HostProps } from "./host/host.js";
export { HostFile, type HostFileProps } from "./host/hostFile.js";
export {
  type IListener,
  Listener,
  type ListenerProps,
  type ListenerTls,
  type TlsSettings,
  type ProxyProtocolOptions,
} from "./proxy/listener.js";
export { type LocalDeliveryOptions } from "./delivery/local.js";
export {
  type HttpsOptions,
  type ListenOptions,
  Mode,
  type PlainOptions,
  type TlsOptions,
} from "./proxy/mode.js";
export {
  type MonitoringFileProps,
  type AlertRulesProps,
  type MetricsDashboardProps,
  AlertRules,
  MetricsDashboard,
} from "./service/monitoring.js";
export {
  type AlertRulesInput,
  type DashboardInput,
  renderAlertRules,
  renderDashboard,
  type ScrapeJob,
} from "./service/monitoringFiles.js";
export { StaticNetwork, type StaticNetworkProps } from "./service/network.js";
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
} from "./proxy/notification.js";
export type { NodePlatform } from "./host/nodeDownload.js";
export { NodeRuntime, type PinnedNodeOptions } from "./host/nodeRuntime.js";
export type { IProxy, IReverseProxy, IProxyService, IContainerProxy } from "./proxy/proxyInterfaces.js";
export { ProxyService, type ProxyServiceProps } from "./service/proxyService.js";
export type {
  ProxySettings,
  ProxyRequestId,
  ProxyLimits,
  ProxyTimeouts,
  AcceptedRisk,
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
} from "./proxy/proxySettings.js";
export { ReverseProxy, type ReverseProxyProps } from "./proxy/reverseProxy.js";
export { ReverseProxyBase } from "./proxy/reverseProxyBase.js";
export {
  FILE_SYNC_RESPONSE_HEADERS,
  type HstsOptions,
  type ResponseHeaders,
} from "./proxy/responseHeaders.js";
export { type RateLimit, Route, type RouteProps, type RouteChanges } from "./proxy/route.js";
export type { SshBastion, SshDeliveryOptions, SshLogin } from "./delivery/connection.js";
export type { SelfSignedOptions } from "./proxy/selfSignedOptions.js";
export { SystemdUnit, type SystemdUnitProps } from "./host/systemdUnit.js";
export type { PrivateKeyResource, SelfSignedCertResource } from "./providers/resources.js";
export { SecurityReview, type SecurityReviewOptions } from "./proxy/securityReview.js";
export { SelfSignedTls, TlsMaterial, type TlsFilePaths, type TlsFiles } from "./proxy/tlsMaterial.js";
export { TlsPolicy, type FileSyncPolicyOptions, type TlsPolicyOptions } from "./proxy/tlsPolicy.js";
export {
  type IUpstream,
  Upstream,
  type UpstreamTls,
  type UpstreamServer,
  type UpstreamSticky,
  type UpstreamHealth,
  type UpstreamProps,
} from "./proxy/upstream.js";
export { type IVirtualServer, VirtualServer, type VirtualServerProps } from "./proxy/virtualServer.js";
// Types of the layer below that occur in props and members.
export {
  type AllowedPort,
  type Daemon,
  DEFAULT_HOST_PATHS,
  type HostPaths,
  type NetworkInterface,
  type UnitCommand,
  type UnitDocument,
  type UnitSection,
  type UnitSectionName,
  type UnitSpecifiers,
  type UnitValue,
  type UnitVariable,
} from "../render/index.js";
