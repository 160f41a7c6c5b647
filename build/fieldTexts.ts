import ts from "typescript";
import { configSchema } from "../src/model/config/config.js";
import { nodesAt, type SchemaNode, variants } from "../src/model/config/schema.js";
import { deploymentSchema } from "../src/model/deployment.js";
import { expectation } from "../src/model/expect.js";

/**
 * What the schemas say of options that become fields of a document. An option whose docstring has no text has that of its
 * field: in `docs/api/`, and in the declarations of the package, from which editors show it. The docstring may still have
 * tags: `@remarks` is what the option means beside its field, and `@default` what the construct fills in.
 */

/** A docstring. */
export interface Doc {
  readonly text: string;
  /** What the value may be, where the schema says it. */
  readonly allowed?: string;
  readonly byDefault?: string;
  readonly params: readonly { readonly name: string; readonly text: string }[];
}

const routes = ["virtualServers", 0, "routes", 0] as const;
const action = (type: string): SchemaNode =>
  nodesAt(configSchema, [...routes, "action"]).find(({ properties }) => properties?.type?.const === type)!;
const objectsIn = (schema: Parameters<typeof nodesAt>[0], path: readonly PropertyKey[]): SchemaNode[] =>
  nodesAt(schema, path).filter(({ properties }) => properties !== undefined);
const objectsAt = (...path: readonly PropertyKey[]): SchemaNode[] => objectsIn(configSchema, path);
const objectAt = (...path: readonly PropertyKey[]): SchemaNode => objectsAt(...path)[0]!;
const deployed = (...path: readonly PropertyKey[]): SchemaNode => objectsIn(deploymentSchema, path)[0]!;
const expected = (...path: readonly PropertyKey[]): SchemaNode => objectsIn(expectation, path)[0]!;

const dns = ["certificateAuthorities", 0, "dns"] as const;
const records = (type: string): SchemaNode =>
  objectsAt(...dns).find(({ properties }) => properties!.type?.const === type)!;
const notified = ["notifications", "targets", 0] as const;
const target = (type: string): SchemaNode =>
  objectsAt(...notified).find(({ properties }) => properties!.type?.const === type)!;
const settingsFile = (kind: string): SchemaNode =>
  objectsIn(deploymentSchema, ["settings", "files", 0]).find(
    ({ properties }) => properties!.kind!.const === kind,
  )!;
const settingsItem = (kind: string): SchemaNode => settingsFile(kind).properties!.items!.items!;

const fieldAt = (...path: readonly PropertyKey[]): SchemaNode =>
  objectAt(...path.slice(0, -1)).properties![path.at(-1) as string]!;
/** An object, and fields of another one, under the names that options have. */
const both = (object: SchemaNode, more: Readonly<Record<string, SchemaNode>>): SchemaNode => ({
  ...object,
  properties: { ...object.properties, ...more },
});

/** Of a front end's application, whose virtual server and routes it makes. */
const ofApplication = {
  errorPages: fieldAt("virtualServers", 0, "errorPages"),
  responseHeaders: fieldAt("virtualServers", 0, "responseHeaders"),
};
const ofFileSync = {
  ...ofApplication,
  requestBodyTimeoutMs: fieldAt(...routes, "requestBodyTimeoutMs"),
  webdavDestination: action("proxy").properties!.destination!,
};

/** The object of a document that each interface becomes. */
const OBJECTS: Readonly<Record<string, SchemaNode>> = {
  AccessLogFile: objectAt("logs", "access"),
  AccessLogStream: objectsAt("logs", "access")[1]!,
  AcmeDnsOptions: records("acme-dns"),
  AcmeOptions: both(objectAt("certificateAuthorities", 0), {
    names: fieldAt("listeners", 0, "tls", "acme", "names"),
    keyType: fieldAt("listeners", 0, "tls", "acme", "keyType"),
  }),
  AnyNotificationTarget: target("webhook"),
  AnySettingsFile: settingsFile("ini"),
  AnySettingsItem: settingsItem("ini"),
  CommandRule: deployed("services", "daemons", 0, "command"),
  DaemonUnit: deployed("services", "daemons", 0),
  DatabaseConnection: deployed("database"),
  DeploymentUnits: deployed("services"),
  DescribedSettings: deployed("settings"),
  DnsProgramOptions: records("program"),
  DnsRecord: deployed("network", "dnsRecords", 0),
  DnsServerOptions: objectAt(...dns, "server"),
  DnsUpdateOptions: records("rfc2136"),
  DnsWaitOptions: records("rfc2136"),
  DoctorRow: deployed("rows", 0),
  EnvSettingsFile: settingsFile("env"),
  EnvSettingsItem: settingsItem("env"),
  ErrorLogFile: objectAt("logs", "error"),
  ErrorLogStream: objectsAt("logs", "error")[1]!,
  ErrorPageFile: objectsAt("virtualServers", 0, "errorPages", 0)[1]!,
  ErrorPageText: objectAt("virtualServers", 0, "errorPages", 0),
  ExpectedCause: expected("causes", 0),
  ExpectedEvidence: expected("causes", 0, "evidence"),
  ExpectedField: expected("fields", 0),
  ExpectedLocation: expected("location"),
  ExpectedMember: expected("members", 0),
  ExpectedNetwork: deployed("network"),
  ExpectedResponse: expected(),
  ExternalAccountBinding: objectAt("certificateAuthorities", 0, "externalAccountBinding"),
  FileSyncActivationProps: deployed(),
  FileSyncFrontEndProps: { properties: ofFileSync },
  FileSyncProxyProps: {
    properties: { ...ofFileSync, serverNames: fieldAt("virtualServers", 0, "serverNames") },
  },
  ForwardedOptions: action("proxy").properties!.forwarded!,
  GotifyOptions: target("gotify"),
  GotifyTarget: target("gotify"),
  HealthcheckOptions: target("healthcheck"),
  HealthcheckTarget: target("healthcheck"),
  HealthListener: objectAt("healthListener"),
  HostDescription: deployed(),
  HstsOptions: objectAt("virtualServers", 0, "hsts"),
  IniSettingsFile: settingsFile("ini"),
  IniSettingsItem: settingsItem("ini"),
  ListenerProps: objectAt("listeners", 0),
  ListenOptions: { properties: { proxyProtocol: fieldAt("listeners", 0, "proxyProtocol") } },
  NtfyOptions: target("ntfy"),
  NtfyTarget: target("ntfy"),
  PortForward: deployed("network", "portForwards", 0),
  MetricsAddress: objectsAt("metricsListener")[0]!,
  MetricsSocket: objectsAt("metricsListener")[1]!,
  ProxyLimits: objectAt("limits"),
  ProxyLogs: objectAt("logs"),
  ProxyMaintenance: objectAt("maintenance"),
  ProxyNotifications: objectAt("notifications"),
  ProxyOptions: action("proxy"),
  ProxyProtocolOptions: objectAt("listeners", 0, "proxyProtocol"),
  ProxyRequestId: objectAt("requestId"),
  ProxySettings: objectAt(),
  ProxyTimeouts: objectAt("timeouts"),
  PythonSettingsFile: settingsFile("python"),
  PythonSettingsItem: settingsItem("python"),
  RedirectOptions: action("redirect"),
  RespondOptions: action("respond"),
  ResponseHeaders: objectAt(...routes, "responseHeaders"),
  ReplayGate: deployed("replay"),
  ResponseProbe: deployed("probe"),
  RouteProps: objectAt(...routes),
  ServedTree: deployed("trees", 0),
  SharedTicketKeys: objectAt("ticketKeys"),
  SharedTicketSecret: { properties: { rotateMs: fieldAt("ticketKeys", "rotateMs") } },
  StaticFilesOptions: action("staticFiles"),
  StatusOptions: action("status"),
  TlsFilePaths: objectAt("listeners", 0, "tls"),
  TlsOptions: {
    properties: {
      hsts: fieldAt("virtualServers", 0, "hsts"),
      http2: fieldAt("listeners", 0, "http2"),
    },
  },
  TlsPolicyOptions: objectAt("listeners", 0, "tls", "policy"),
  UpstreamHealth: objectAt("upstreams", 0, "health"),
  UpstreamProps: objectAt("upstreams", 0),
  UpstreamServer: objectAt("upstreams", 0, "servers", 0),
  UpstreamSticky: objectAt("upstreams", 0, "sticky"),
  UpstreamTls: objectAt("upstreams", 0, "tls"),
  VirtualServerProps: objectAt("virtualServers", 0),
  WebActivationProps: both(deployed(), { daemons: deployed("services").properties!.daemons! }),
  WebFrontEndProps: { properties: ofApplication },
  WebhookOptions: target("webhook"),
  WebhookTarget: target("webhook"),
};

/** The field that an option of an interface becomes. */
export const fieldOf = (owner: string, name: string): SchemaNode | undefined =>
  OBJECTS[owner]?.properties?.[name];

/** What the schema says of an option without a text of its own, with what it may be, its default, and its remarks. */
export function fieldDoc(owner: string, option: ts.ClassElement | ts.TypeElement): Doc | undefined {
  const field = fieldOf(owner, option.name?.getText() ?? "");
  if (field?.description === undefined || hasText(option)) return undefined;
  const remarks = tagText(option, "remarks");
  const allowed = allowedIn(field);
  // One that must be given has no default, whatever the field has.
  const required = !("questionToken" in option && option.questionToken !== undefined);
  const byDefault = tagText(option, "default") ?? (required ? undefined : defaultOf(field));
  return {
    text: [field.description, ...(remarks === undefined ? [] : [remarks])].join(" "),
    params: [],
    ...(allowed === "" ? {} : { allowed }),
    ...(byDefault === undefined ? {} : { byDefault }),
  };
}

const hasText = (node: ts.Node): boolean =>
  ts.getJSDocCommentsAndTags(node).some((part) => ts.isJSDoc(part) && part.comment !== undefined);

function tagText(node: ts.Node, name: string): string | undefined {
  const tag = ts.getJSDocTags(node).find(({ tagName }) => tagName.text === name);
  return tag && ts.getTextOfJSDocComment(tag.comment)?.replace(/\s+/g, " ");
}

/** What a number, a text or each item of a list may be, in words. */
function allowedIn(field: SchemaNode): string {
  const kinds = variants([field.items ?? field]);
  const { minimum, maximum, unit = field.unit } = kinds.find((one) => one.minimum !== undefined) ?? {};
  const shapes = kinds.flatMap(({ patternErrorMessage }) => patternErrorMessage ?? []);
  const range =
    minimum === undefined || maximum === Number.MAX_SAFE_INTEGER
      ? []
      : [`${minimum} to ${maximum}${unit === undefined ? "" : ` ${unit}`}`];
  const all = [...new Set([...range, ...shapes])].join("; or ");
  return field.items === undefined || all === "" ? all : `each ${all}`;
}

function defaultOf({ default: byDefault, properties }: SchemaNode): string | undefined {
  const value = JSON.stringify(byDefault);
  if (["[]", '""'].includes(value)) return "- none";
  if (value !== "{}") return value;
  return properties === undefined ? "- none" : "- those of its fields";
}
