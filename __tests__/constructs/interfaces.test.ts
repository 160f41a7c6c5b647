import type {
  AccessLogFile,
  AccessLogStream,
  AcmeDnsOptions,
  DatabaseConnection,
  DnsProgramOptions,
  DnsUpdateOptions,
  ErrorLogFile,
  ErrorLogStream,
  ErrorPage,
  ExpectedResponse,
  HealthListener,
  HostDescription,
  ForwardedOptions,
  HstsOptions,
  ListenerProps,
  ProxyLimits,
  ProxyLogs,
  ProxyMaintenance,
  ProxyNotifications,
  ProxyRequestId,
  ProxyOptions,
  ProxyProtocolOptions,
  ProxyTimeouts,
  RedirectOptions,
  RespondOptions,
  MetricsAddress,
  MetricsSocket,
  ResponseHeaders,
  ResponseProbe,
  RouteProps,
  SharedTicketKeys,
  DescribedSettings,
  StaticFilesOptions,
  StatusOptions,
  TlsPolicyOptions,
  UpstreamProps,
  VirtualServerProps,
} from "../../src/index.js";
import type { DeploymentInput } from "../../src/model/deployment.js";
import type {
  CertificateAuthorityInput,
  ActionInput,
  ExpectationInput,
  ListenerInput,
  ProxyConfigInput,
  RouteInput,
  TlsPolicySettings,
  UpstreamInput,
  VirtualServerInput,
} from "../../src/model/index.js";

/**
 * Options that users write are interfaces; what a document may hold, and what it means, is in its schema. The compiler
 * holds the two together here: it does not take a pair that differs.
 */

/** Every field required, so that one which only one side has is seen. */
type Full<T> = T extends readonly (infer E)[]
  ? readonly Full<E>[]
  : T extends object
    ? { [K in keyof T]-?: Full<NonNullable<T[K]>> }
    : T;

type Within<A, B> = [A] extends [B] ? true : false;
type Same<A, B> = [Within<A, B>, Within<B, A>, Within<Full<A>, Full<B>>, Within<Full<B>, Full<A>>] extends [
  true,
  true,
  true,
  true,
]
  ? true
  : false;

type Kind<T extends ActionInput["type"]> = Extract<ActionInput, { type: T }>;
type Config = Required<ProxyConfigInput>;
type Log<K extends keyof Config["logs"]> = Exclude<NonNullable<Config["logs"][K]>, "off">;
type Description = Pick<
  DeploymentInput,
  "name" | "settings" | "trees" | "rows" | "database" | "network" | "probe" | "replay" | "requireCertificate"
>;
type Expected<K extends keyof DeploymentInput> = NonNullable<DeploymentInput[K]>;
/** What a construct takes but its references and its name, which its id can stand for. */
type Values<T, K extends keyof T> = Omit<T, K | "name">;

const SAME: { readonly [pair: string]: true } = {
  limits: true satisfies Same<ProxyLimits, Config["limits"]>,
  timeouts: true satisfies Same<ProxyTimeouts, Config["timeouts"]>,
  maintenance: true satisfies Same<ProxyMaintenance, Config["maintenance"]>,
  requestId: true satisfies Same<ProxyRequestId, NonNullable<Config["requestId"]>>,
  ticketKeys: true satisfies Same<SharedTicketKeys, Config["ticketKeys"]>,
  logs: true satisfies Same<ProxyLogs, Config["logs"]>,
  accessLog: true satisfies Same<AccessLogFile | AccessLogStream, Log<"access">>,
  errorLog: true satisfies Same<ErrorLogFile | ErrorLogStream, Log<"error">>,
  dns: true satisfies Same<
    DnsUpdateOptions | DnsProgramOptions | AcmeDnsOptions,
    NonNullable<CertificateAuthorityInput["dns"]>
  >,
  notifications: true satisfies Same<ProxyNotifications, NonNullable<Config["notifications"]>>,
  metricsListener: true satisfies Same<
    MetricsAddress | MetricsSocket,
    NonNullable<Config["metricsListener"]>
  >,
  healthListener: true satisfies Same<HealthListener, NonNullable<Config["healthListener"]>>,
  upstream: true satisfies Same<Omit<UpstreamProps, "name">, Omit<UpstreamInput, "name">>,
  route: true satisfies Same<Values<RouteProps, "action" | "expect">, Omit<RouteInput, "action" | "name">>,
  listener: true satisfies Same<
    Omit<Values<ListenerProps, "tls">, "address">,
    Omit<ListenerInput, "tls" | "name" | "protocol" | "address">
  >,
  proxyProtocol: true satisfies Same<ProxyProtocolOptions, NonNullable<ListenerInput["proxyProtocol"]>>,
  virtualServer: true satisfies Same<
    Values<VirtualServerProps, "listeners" | "tls" | "hsts" | "expect">,
    Omit<VirtualServerInput, "listeners" | "name" | "routes" | "hsts">
  >,
  expect: true satisfies Same<ExpectedResponse, ExpectationInput>,
  // That a certificate is self-signed is known in the stack only.
  hsts: true satisfies Same<Omit<HstsOptions, "force">, NonNullable<VirtualServerInput["hsts"]>>,
  errorPages: true satisfies Same<readonly ErrorPage[], NonNullable<VirtualServerInput["errorPages"]>>,
  responseHeaders: true satisfies Same<ResponseHeaders, NonNullable<RouteInput["responseHeaders"]>>,
  ...({
    proxy: true satisfies Same<ProxyOptions, Omit<Kind<"proxy">, "type" | "upstream">>,
    staticFiles: true satisfies Same<StaticFilesOptions, Omit<Kind<"staticFiles">, "type" | "directory">>,
    redirect: true satisfies Same<RedirectOptions, Omit<Kind<"redirect">, "type">>,
    status: true satisfies Same<StatusOptions, Omit<Kind<"status">, "type">>,
    respond: true satisfies Same<RespondOptions, Omit<Kind<"respond">, "type" | "status">>,
  } satisfies { readonly [T in ActionInput["type"]]: true }),
  forwarded: true satisfies Same<ForwardedOptions, NonNullable<Kind<"proxy">["forwarded"]>>,
  tlsPolicy: true satisfies Same<Required<TlsPolicyOptions>, TlsPolicySettings>,
  settings: true satisfies Same<DescribedSettings, Expected<"settings">>,
  database: true satisfies Same<DatabaseConnection, Expected<"database">>,
  probe: true satisfies Same<ResponseProbe, Expected<"probe">>,
  description: true satisfies Same<HostDescription, Description>,
};

test("the options of the constructs and the fields of the documents are the same types", () => {
  expect(Object.keys(SAME).length).toBeGreaterThan(20);
});

test("a pair that differs would not compile", () => {
  expect([
    // @ts-expect-error a field that the config does not have
    true satisfies Same<ProxyLimits & { readonly more?: number }, Config["limits"]>,
    // @ts-expect-error a field that the interface does not have
    true satisfies Same<Omit<ProxyTimeouts, "drainMs">, Config["timeouts"]>,
    // @ts-expect-error a field of another type
    true satisfies Same<Omit<ResponseProbe, "enabled"> & { readonly enabled?: string }, Expected<"probe">>,
  ]).toHaveLength(3);
});

test("the package exports classes, and the few functions and constants of its pages, and nothing internal", async () => {
  const { default: _, ...exported } = await import("../../src/index.js");
  const [classes, others] = [true, false].map((isClass) =>
    Object.entries(exported)
      .filter(([, value]) => (typeof value === "function" && /^class\b/.test(String(value))) === isClass)
      .map(([name]) => name),
  );
  expect(classes!.every((name) => /^[A-Z]\w+$/.test(name))).toBe(true);
  expect(others!.sort()).toEqual([
    "DEFAULT_HOST_PATHS",
    "FILE_SYNC_RESPONSE_HEADERS",
    "PROBLEM_CODES",
    "formatProblem",
    "parseConfig",
    "parseConfigText",
    "renderAlertRules",
    "renderDashboard",
  ]);
});
