import { configSchema } from "../../src/model/config/config.js";
import { deploymentSchema } from "../../src/model/deployment.js";
import { nodesAt, type SchemaNode } from "../../src/model/config/schema.js";
import type { ApiExport, ApiMember } from "./api.js";

/** What is wrong with the docstrings of the API, one line each. */
export function docProblems(api: readonly ApiExport[]): string[] {
  return api.flatMap((one) => [
    ...(one.doc.text === "" ? [`${one.name} has no docstring`] : []),
    ...one.members.flatMap((member) => [
      ...(member.doc.text === "" ? [`${one.name}.${member.name} has no docstring`] : []),
      ...factProblems(one, member),
    ]),
  ]);
}

/** A docstring repeats default and range of the field that the option becomes, so that an editor shows them. */
function factProblems({ name: owner }: ApiExport, { name, doc }: ApiMember): string[] {
  const field = FIELDS[owner]?.properties?.[name];
  if (field === undefined) return [];
  const at = `${owner}.${name}`;
  const { default: byDefault, minimum, maximum } = field;
  const range = `${minimum} to ${maximum}`;
  return [
    ...(byDefault === undefined || OWN_DEFAULT.includes(at) || saysDefault(doc.byDefault, byDefault)
      ? []
      : [`${at} says \`@default ${doc.byDefault ?? ""}\`, the schema ${JSON.stringify(byDefault)}`]),
    ...(minimum === undefined || maximum === Number.MAX_SAFE_INTEGER || doc.text.includes(range)
      ? []
      : [`${at} does not say that it goes from ${range}`]),
  ];
}

/** A scalar is given as it is, with words after it if need be; what is empty is described in words. */
function saysDefault(said: string | undefined, byDefault: unknown): boolean {
  if (said === undefined) return false;
  if (typeof byDefault === "object" || byDefault === "") return said.startsWith("- ");
  const value = JSON.stringify(byDefault);
  return said === value || said.startsWith(`${value} (`);
}

/** Where the constructs give a field another default than its schema, which their docstring says. */
const OWN_DEFAULT = ["ProxyLogs.access", "ProxyLogs.error", "ProxySettings.logs"];

const routes = ["virtualServers", 0, "routes", 0] as const;
const action = (type: string): SchemaNode =>
  nodesAt(configSchema, [...routes, "action"]).find(({ properties }) => properties?.type?.const === type)!;
const objectAt = (...path: readonly PropertyKey[]): SchemaNode => objectsAt(...path)[0]!;
const objectsAt = (...path: readonly PropertyKey[]): SchemaNode[] =>
  nodesAt(configSchema, path).filter(({ properties }) => properties !== undefined);
const deployed = (...path: readonly PropertyKey[]): SchemaNode =>
  nodesAt(deploymentSchema, path).find(({ properties }) => properties !== undefined)!;

const dns = ["certificateAuthorities", 0, "dns"] as const;
const records = (type: string): SchemaNode =>
  objectsAt(...dns).find(({ properties }) => properties!.type?.const === type)!;

const notified = ["notifications", "targets", 0] as const;
const target = (type: string): SchemaNode =>
  objectsAt(...notified).find(({ properties }) => properties!.type?.const === type)!;

/** The object of a document that each interface becomes. */
const FIELDS: Readonly<Record<string, SchemaNode>> = {
  AccessLogFile: objectAt("logs", "access"),
  AccessLogStream: objectsAt("logs", "access")[1]!,
  AcmeDnsOptions: records("acme-dns"),
  AnyNotificationTarget: target("webhook"),
  CommandRule: deployed("services", "daemons", 0, "command"),
  DnsProgramOptions: records("program"),
  DnsServerOptions: objectAt(...dns, "server"),
  DnsUpdateOptions: records("rfc2136"),
  DnsWaitOptions: records("rfc2136"),
  DoctorRow: deployed("rows", 0),
  ErrorPageFile: objectsAt("virtualServers", 0, "errorPages", 0)[1]!,
  ErrorPageText: objectAt("virtualServers", 0, "errorPages", 0),
  ExpectedNetwork: deployed("network"),
  ForwardedOptions: action("proxy").properties!.forwarded!,
  GotifyOptions: target("gotify"),
  GotifyTarget: target("gotify"),
  HealthcheckOptions: target("healthcheck"),
  HealthcheckTarget: target("healthcheck"),
  HealthListener: objectAt("healthListener"),
  HstsOptions: objectAt("virtualServers", 0, "hsts"),
  ListenerProps: objectAt("listeners", 0),
  NtfyOptions: target("ntfy"),
  NtfyTarget: target("ntfy"),
  ProxyLimits: objectAt("limits"),
  ProxyLogs: objectAt("logs"),
  ProxyMaintenance: objectAt("maintenance"),
  ProxyNotifications: objectAt("notifications"),
  ProxyOptions: action("proxy"),
  ProxyProtocolOptions: objectAt("listeners", 0, "proxyProtocol"),
  ProxyRequestId: objectAt("requestId"),
  ProxySettings: objectAt(),
  ProxyTimeouts: objectAt("timeouts"),
  RedirectOptions: action("redirect"),
  RespondOptions: action("respond"),
  ResponseHeaders: objectAt(...routes, "responseHeaders"),
  ResponseProbe: deployed("probe"),
  RouteProps: objectAt(...routes),
  ServedTree: deployed("trees", 0),
  SettingsEditing: deployed("settings"),
  SharedTicketKeys: objectAt("ticketKeys"),
  StaticFilesOptions: action("staticFiles"),
  TlsPolicyOptions: objectAt("listeners", 0, "tls", "policy"),
  UpstreamProps: objectAt("upstreams", 0),
  UpstreamServer: objectAt("upstreams", 0, "servers", 0),
  UpstreamTls: objectAt("upstreams", 0, "tls"),
  VirtualServerProps: objectAt("virtualServers", 0),
  WebhookOptions: target("webhook"),
  WebhookTarget: target("webhook"),
};
