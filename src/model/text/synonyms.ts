/**
 * Names that other proxies use for fields of this one: directives of nginx, Caddy, HAProxy and Apache, keys of Traefik,
 * options of nginx proxy manager. They are compared as those of `notSupported.ts`.
 */
export interface Synonym {
  readonly names: readonly string[];
  /** The field's name here. */
  readonly field: string;
  /** The place of the field, as `config/places.ts` names it. */
  readonly of: string;
  /** What else differs. */
  readonly note?: string;
  /**
   * What is set instead beside one of these fields: in a front end (`mode`), in a host (`publicName`), in options of TLS
   * (`material`), in those of `Mode.tls` (`httpsPort`).
   */
  readonly beside?: Readonly<Record<string, string>>;
  /** What is to know about that. */
  readonly besideNote?: string;
}

const PROXY_ACTION = "a `proxy` action";
const STATIC_FILES = "a `staticFiles` action";
const BYTES = "The value is in bytes.";
const MILLISECONDS = "The value is in milliseconds.";
const FROM_FILES = "material: TlsMaterial.fromFiles({ certificate, key })";

const POLICY = {
  mode: "mode: Mode.tls({ policy: TlsPolicy.mozillaIntermediate() })",
  material: "policy: TlsPolicy.mozillaIntermediate()",
};

const OF_TLS_MODE = {
  beside: { httpsPort: "httpPort", mode: "mode: Mode.tls()" },
  besideNote: "Plain HTTP is redirected to `https` unless `httpPort` is `false`.",
};

/** Names that mean a field only in one kind of object, because they mean another one, or none, elsewhere. */
export interface LocalSynonyms {
  /** A field that only this kind of object has. */
  readonly mark: string;
  /** Names by field. */
  readonly names: Readonly<Record<string, readonly string[]>>;
  /** What else differs, by field. */
  readonly notes?: Readonly<Record<string, string>>;
}

const AUTHORITIES = [
  ...["caFile", "caFiles", "caCert", "file", "certificate", "rootCas", "clientCa", "clientCaFile"],
  ...["trustPool", "trustedCaCertFile", "trustedCaCertFiles", "trustedCaCert", "sslClientCertificate"],
  ...["sslCaCertificateFile", "sslTrustedCertificate"],
];

export const LOCAL_SYNONYMS: readonly LocalSynonyms[] = [
  {
    mark: "crl",
    names: {
      ca: AUTHORITIES,
      crl: ["crlFile", "crlFiles", "sslCrl", "sslCaRevocationFile"],
      required: [
        "mode",
        "optional",
        "require",
        "clientAuthType",
        "verify",
        "verifyClient",
        "sslVerifyClient",
      ],
      names: ["users", "allow", "subjects", "commonNames", "commonName", "cn", "sans", "allowedNames"],
    },
    notes: {
      required: "`true` is the default; `false` lets clients without a certificate in.",
      names: "They are common names, mail addresses, DNS names or URIs, without patterns.",
    },
  },
  {
    mark: "usersFile",
    names: {
      usersFile: [
        "users",
        "file",
        "path",
        "htpasswd",
        "authBasicUserFile",
        "userFile",
        "passwordFile",
        "accounts",
      ],
      userField: ["headerField", "userHeader"],
      passOn: ["removeHeader", "passAuth"],
    },
    notes: {
      usersFile: "`portico password NAME` makes the lines of the file.",
      passOn: "Without it, the upstream gets no `Authorization`.",
    },
  },
  {
    mark: "copyFields",
    names: {
      url: ["address", "uri", "endpoint", "upstream", "target"],
      copyFields: ["authResponseHeaders", "copyHeaders", "authRequestSet", "headers", "responseHeaders"],
    },
  },
  {
    mark: "perMs",
    names: {
      requests: ["average", "events", "rate", "limit"],
      perMs: ["period", "window", "interval", "per"],
    },
    notes: { requests: "So many in `perMs` milliseconds.", perMs: MILLISECONDS },
  },
  {
    mark: "wrongSecretsMax",
    names: {
      wrongSecretsMax: ["maxRetry", "maxAttempts", "attempts", "retries", "maxFailures"],
      windowMs: ["findTime", "findTimeMs", "window", "period"],
      closeMs: ["banTime", "banTimeMs", "banDuration", "blockMs", "lockout", "lockoutTime"],
    },
    notes: { windowMs: MILLISECONDS, closeMs: MILLISECONDS },
  },
  { mark: "banTimeMs", names: { maxRetry: ["attempts", "maxAttempts"], banAction: ["action"] } },
];

export const SYNONYMS: readonly Synonym[] = [
  {
    names: ["domain", "domains", "domainName", "domainNames", "host", "hosts", "hostname", "hostnames"],
    field: "serverNames",
    of: "a virtual server",
    beside: { mode: "host.publicName", publicName: "publicName", connectTimeoutMs: "url" },
  },
  {
    names: ["serverNames", "serverName", "serverAlias", "serverAliases", "aliases", "vhost", "fqdn"],
    field: "serverNames",
    of: "a virtual server",
    beside: { mode: "additionalServerNames" },
  },
  { names: ["defaultServer", "catchAll", "isDefault"], field: "default", of: "a virtual server" },
  { names: ["location", "locations", "paths", "handle"], field: "routes", of: "a virtual server" },
  {
    names: [
      "clientAuth",
      "clientCa",
      "clientCaFile",
      "clientCertificates",
      "mtls",
      "mutualTls",
      "requestCert",
    ],
    field: "clientCertificate",
    of: "a virtual server",
  },
  {
    names: ["sslVerifyClient", "sslClientCertificate", "sslCaCertificateFile", "verifyClient"],
    field: "clientCertificate",
    of: "a virtual server",
  },
  { names: ["serverTokens"], field: "versionTokens", of: "a virtual server" },
  {
    names: ["strictTransportSecurity", "stsSeconds", "hstsEnabled", "hstsMaxAge"],
    field: "hsts",
    of: "a virtual server",
    beside: { mode: "mode: Mode.tls({ hsts: {} })" },
  },
  {
    names: ["errorPage", "customErrors", "errorDocument"],
    field: "errorPages",
    of: "a virtual server",
    note: "A page has `statuses` and `html` or `file`.",
  },
  {
    names: ["addHeader", "addHeaders", "customResponseHeaders", "responseHeader", "header", "headers"],
    field: "responseHeaders",
    of: "a route",
    note: "`set` has the fields with their values, `remove` the names of others.",
  },
  {
    names: ["moreClearHeaders", "proxyHideHeader", "hideHeaders", "headerDown"],
    field: "responseHeaders",
    of: "a route",
  },
  {
    names: ["clientMaxBodySize", "maxBodySize", "maxRequestBodyBytes", "limitRequestBody", "bodyLimit"],
    field: "requestBodyBytesMax",
    of: "a route",
    note: `${BYTES} Without this field, the length of a body has no limit.`,
  },
  {
    names: ["maxSize", "uploadLimit", "bodySizeMax", "requestBody"],
    field: "requestBodyBytesMax",
    of: "a route",
    note: BYTES,
  },
  {
    names: ["clientBodyTimeout", "readBody", "requestBodyTimeout"],
    field: "requestBodyTimeoutMs",
    of: "a route",
    note: MILLISECONDS,
  },
  { names: ["sendTimeout", "writeTimeout"], field: "sendTimeoutMs", of: "a route", note: MILLISECONDS },
  { names: ["accessLogs", "customLog", "requestLog"], field: "accessLog", of: "a route" },
  { names: ["logLevel", "errorLogs"], field: "errorLog", of: "a route" },
  { names: ["hideQuery", "logQueryString", "redactQuery"], field: "logQuery", of: "a route" },
  {
    names: [
      ...["allow", "deny", "allowList", "denyList", "whitelist", "blacklist", "ipAllowList", "ipWhitelist"],
      ...["sourceRange", "remoteIp", "accessList"],
    ],
    field: "access",
    of: "a route",
    note: 'In a stack: `access: { allow: ["10.0.0.0/8"] }` of a front end, a site or a route.',
  },
  {
    names: ["limitReq", "rateLimits", "rateLimiting", "requestsPerSecond", "inFlightReq"],
    field: "rateLimit",
    of: "a route",
    note: "`requests` in `perMs` milliseconds for each client, and `burst` at once.",
  },
  { names: ["limitConn", "concurrency", "maxConcurrency"], field: "concurrencyMax", of: "a route" },
  {
    names: ["authBasic", "basicAuth", "authBasicUserFile", "htpasswd", "users"],
    field: "access",
    of: "a route",
    note: 'In a stack: `access: Access.basic({ usersFile: "/etc/portico/users" })` of a front end, a site or a route.',
  },
  {
    names: ["forwardAuth", "authRequest", "auth", "externalAuth", "authelia", "authentik", "oauth2Proxy"],
    field: "access",
    of: "a route",
    note: 'In a stack: `access: Access.authelia({ url: "http://127.0.0.1:9091" })` of a front end, a site or a route.',
  },
  { names: ["log", "logging", "logFormat"], field: "logs", of: "the proxy" },
  {
    names: ["anonymize", "anonymizeIp", "maskIp", "ipMask"],
    field: "clientAddress",
    of: "`logs` of the proxy",
  },
  {
    names: ["backend", "proxyPass", "reverseProxy", "forwardTo", "target", "dial"],
    field: "upstream",
    of: PROXY_ACTION,
  },
  { names: ["forwardHost", "forwardPort", "uri", "endpoint", "origin"], field: "url", of: "an upstream" },
  {
    names: ["preserveHost", "passHostHeader", "proxyPreserveHost", "changeOrigin", "headerUp"],
    field: "hostHeader",
    of: PROXY_ACTION,
    note: '`"client"` is the default; `"upstream"` sends the host of the upstream.',
  },
  {
    names: ["proxySetHeader", "setHeader", "requestHeaders", "customRequestHeaders", "requestHeader"],
    field: "setHeaders",
    of: PROXY_ACTION,
    note: "Values are literal; `forwarded` and `hostHeader` send what depends on the client.",
  },
  {
    names: ["xForwardedFor", "forwardFor", "optionForwardfor", "forwardedHeaders", "xfwd"],
    field: "forwarded",
    of: PROXY_ACTION,
  },
  {
    names: ["websocket", "websockets", "websocketSupport", "allowWebsocketUpgrade", "ws"],
    field: "upgrades",
    of: PROXY_ACTION,
    note: "`websocket` is forwarded by default.",
  },
  { names: ["stripPath", "uriStripPrefix", "pathStrip"], field: "strip", of: PROXY_ACTION },
  { names: ["uriReplace", "rewritePath", "rewriteTarget"], field: "rewrite", of: PROXY_ACTION },
  {
    names: ["proxyConnectTimeout", "timeoutConnect", "dialTimeout", "connectTimeout"],
    field: "connectTimeoutMs",
    of: "an upstream",
    note: MILLISECONDS,
  },
  {
    names: ["proxyReadTimeout", "timeoutServer", "responseHeaderTimeout", "readTimeout"],
    field: "readTimeoutMs",
    of: "an upstream",
    note: MILLISECONDS,
  },
  { names: ["proxySendTimeout"], field: "sendTimeoutMs", of: "an upstream", note: MILLISECONDS },
  { names: ["maxConn", "maxConns", "maxConnsPerHost"], field: "connectionsMax", of: "an upstream" },
  {
    names: ["maxIdleConnsPerHost", "maxIdleConns", "keepaliveIdleConns"],
    field: "idleConnectionsMax",
    of: "an upstream",
  },
  { names: ["keepaliveConnections"], field: "idleConnectionsMax", of: "an upstream" },
  { names: ["idleConnTimeout"], field: "idleTimeoutMs", of: "an upstream", note: MILLISECONDS },
  { names: ["lbTryDuration"], field: "holdMs", of: "an upstream", note: MILLISECONDS },
  { names: ["healthUri", "healthInterval", "healthCheckPath"], field: "health", of: "an upstream" },
  { names: ["proxyCookiePath", "proxyCookieDomain"], field: "mapCookies", of: PROXY_ACTION },
  { names: ["underscoresInHeaders", "ignoreInvalidHeaders"], field: "keepFields", of: PROXY_ACTION },
  { names: ["http2Support"], field: "http2", of: "a listener" },
  { names: ["maxQueue"], field: "queuedRequestsMax", of: "an upstream" },
  { names: ["timeoutQueue"], field: "queueTimeoutMs", of: "an upstream", note: MILLISECONDS },
  { names: ["backends", "loadBalancer", "upstreamServers"], field: "servers", of: "an upstream" },
  {
    names: ["lbPolicy", "lbMethod", "algorithm", "leastConn", "ipHash"],
    field: "balance",
    of: "an upstream",
  },
  {
    names: ["stickySession", "stickySessions", "affinity", "stickyCookie"],
    field: "sticky",
    of: "an upstream",
  },
  { names: ["slowStart"], field: "slowStartMs", of: "an upstream", note: MILLISECONDS },
  { names: ["sendProxy", "sendProxyV2", "proxyProtocolVersion"], field: "proxyProtocol", of: "an upstream" },
  {
    names: ["insecureSkipVerify", "tlsInsecureSkipVerify", "proxySslVerify", "rejectUnauthorized"],
    field: "verify",
    of: "`tls` of an upstream",
    note: "Prefer `caFile` with the upstream's root certificate.",
  },
  {
    names: ["ca", "rootCas", "proxySslTrustedCertificate", "serversTransport", "trustPool"],
    field: "caFile",
    of: "`tls` of an upstream",
  },
  { names: ["proxySslName", "sni"], field: "serverName", of: "`tls` of an upstream" },
  {
    names: ["listen", "bind", "entryPoint", "entryPoints"],
    field: "listeners",
    of: "the proxy",
    beside: { mode: "mode" },
  },
  { names: ["acceptProxy", "acceptProxyProtocol"], field: "proxyProtocol", of: "a listener" },
  {
    names: ["ssl", "https", "tlsConfig", "certResolver"],
    field: "tls",
    of: "a listener",
    beside: { mode: "mode: Mode.tls()" },
  },
  {
    names: [
      "sslCertificate",
      "cert",
      "certificate",
      "certFile",
      "certificateFile",
      "crt",
      "sslCertificateFile",
    ],
    field: "certificate",
    of: "`tls` of a listener",
    beside: { mode: `mode: Mode.tls({ ${FROM_FILES} })`, material: FROM_FILES },
  },
  {
    names: ["sslCertificateKey", "keyFile", "privateKey", "sslCertificateKeyFile"],
    field: "key",
    of: "`tls` of a listener",
    beside: { mode: `mode: Mode.tls({ ${FROM_FILES} })`, material: FROM_FILES },
  },
  { names: ["sslDhparam", "dhparams"], field: "dhparam", of: "`tls` of a listener" },
  {
    names: ["sslProtocols", "minTlsVersion", "tlsMinVersion"],
    field: "policy",
    of: "`tls` of a listener",
    beside: POLICY,
  },
  {
    names: ["sslCiphers", "cipherSuites", "ciphers"],
    field: "policy",
    of: "`tls` of a listener",
    beside: POLICY,
  },
  {
    names: ["letsencrypt", "autoHttps", "acmeCa", "letsEncryptEmail", "email"],
    field: "acme",
    of: "`tls` of a listener",
    beside: {
      mode: "mode: Mode.tls({ material: TlsMaterial.acme({ email, agreeToTerms }) })",
      material: "material: TlsMaterial.acme({ email, agreeToTerms })",
    },
  },
  {
    names: [
      ...["forceSsl", "sslForced", "redirectToHttps", "httpsRedirect", "redirectScheme", "sslRedirect"],
      ...["httpsOnly", "httpRedirect", "redirectHttp"],
    ],
    field: "scheme",
    of: "a `redirect` action",
    note: "A virtual server on the http listener needs a route with this action.",
    ...OF_TLS_MODE,
  },
  {
    names: ["redirect", "redir", "return"],
    field: "action",
    of: "a route",
    note: "A redirect is an action of type `redirect`.",
    ...OF_TLS_MODE,
  },
  { names: ["permanent", "statusCode", "code"], field: "status", of: "a `redirect` action" },
  { names: ["redirectTo", "forwardDomain", "to"], field: "host", of: "a `redirect` action" },
  { names: ["root", "documentRoot", "alias", "dir"], field: "directory", of: STATIC_FILES },
  { names: ["indexNames", "directoryIndex", "indexFile"], field: "index", of: STATIC_FILES },
  { names: ["cacheAssets", "maxAge"], field: "cacheControl", of: STATIC_FILES },
  { names: ["followSymlinks", "disableSymlinks"], field: "symlinks", of: STATIC_FILES },
  {
    names: [
      "setRealIpFrom",
      "trustedIps",
      "trustProxy",
      "trustedProxyIps",
      "realIpFrom",
      "trustForwardedProto",
      "trustForwardHeader",
    ],
    field: "trustedProxies",
    of: "the proxy",
  },
  { names: ["realIpHeader", "clientIpHeaders"], field: "clientAddressField", of: "the proxy" },
  { names: ["workerProcesses", "nbthread"], field: "workers", of: "the proxy" },
  { names: ["workerConnections"], field: "connectionsMax", of: "`limits` of the proxy" },
  {
    names: ["largeClientHeaderBuffers", "maxHeaderBytes"],
    field: "headBytesMax",
    of: "`limits` of the proxy",
  },
  { names: ["keepaliveRequests"], field: "keepAliveRequestsMax", of: "`limits` of the proxy" },
  { names: ["maxConcurrentStreams"], field: "concurrentStreamsMax", of: "`limits` of the proxy" },
  {
    names: ["keepaliveTimeout", "idleTimeout", "timeoutHttpKeepAlive"],
    field: "keepAliveMs",
    of: "`timeouts` of the proxy",
    note: MILLISECONDS,
  },
  {
    names: ["clientHeaderTimeout", "readHeaderTimeout", "timeoutHttpRequest"],
    field: "requestHeadMs",
    of: "`timeouts` of the proxy",
    note: MILLISECONDS,
  },
  {
    names: ["gracePeriod", "workerShutdownTimeout"],
    field: "drainMs",
    of: "`timeouts` of the proxy",
    note: MILLISECONDS,
  },
  { names: ["metrics", "stubStatus", "prometheus", "stats"], field: "metricsListener", of: "the proxy" },
  { names: ["ping", "healthz", "livenessProbe", "readinessProbe"], field: "healthListener", of: "the proxy" },
  { names: ["webhook", "alerts", "webhookUrl"], field: "notifications", of: "the proxy" },
];
