import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { openFolder } from "../../testkit/portico.js";
import { configNode, type SchemaNode, variants } from "../../src/model/config/schema.js";
import type { ProxyConfig, ProxyConfigInput } from "../../src/model/index.js";
import { FILE_PATH } from "../../src/model/text/textRule.js";
import { loadConfig } from "../../src/runtime/load/loadConfig.js";

/** `--root`: each path of a config is looked up below a folder. The schema says which fields are paths. */

const tls = {
  ...{ certificate: "/r/certificate", key: "/r/key", dhparam: "/r/dhparam" },
  certificates: [{ certificate: "/r/certificate2", key: "/r/key2" }],
};

/** Every field that is a path, in a config that the parser takes. */
const EVERY_PATH: ProxyConfigInput = {
  version: 1,
  logs: { access: { path: "/r/access.log" }, error: { path: "/r/error.log" } },
  certificateAuthorities: [
    {
      ...{ name: "update", agreeToTerms: true, roots: "/r/roots" },
      externalAccountBinding: { keyId: "id", keyFile: "/r/mac" },
      dns: {
        type: "rfc2136",
        server: { address: "192.0.2.53" },
        zone: "example.org",
        keyFile: "/r/tsig",
      },
    },
    {
      ...{ name: "api", agreeToTerms: true },
      dns: { type: "desec", tokenFile: "/r/dnsToken" },
    },
    {
      ...{ name: "program", agreeToTerms: true },
      dns: { type: "program", command: "/r/command", credentialFile: "/r/credential" },
    },
    {
      ...{ name: "service", agreeToTerms: true },
      dns: {
        type: "acme-dns",
        url: "https://dns.example.org",
        accountsFile: "/r/accounts",
        roots: "/r/dnsRoots",
      },
    },
  ],
  accessPolicies: { policy: { denyFile: "/r/denied", basic: { usersFile: "/r/users" } } },
  ticketKeys: { file: "/r/tickets" },
  notifications: {
    targets: [
      { name: "webhook", type: "webhook", roots: "/r/roots", urlFile: "/r/url", tokenFile: "/r/token" },
      { name: "ntfy", type: "ntfy", roots: "/r/roots", urlFile: "/r/url", tokenFile: "/r/token" },
      { name: "gotify", type: "gotify", roots: "/r/roots", urlFile: "/r/url", tokenFile: "/r/token" },
      { name: "healthcheck", type: "healthcheck", roots: "/r/roots", urlFile: "/r/url" },
    ],
  },
  metricsListener: { path: "/r/metrics.sock" },
  listeners: [
    { name: "http", address: "127.0.0.1", port: 80, protocol: "http" },
    { name: "https", address: "127.0.0.1", port: 443, protocol: "https", tls },
  ],
  upstreams: [
    {
      ...{ name: "web", url: "https://web.example.org" },
      tls: { caFile: "/r/ca", certificateFile: "/r/own", privateKeyFile: "/r/ownKey" },
    },
  ],
  virtualServers: [
    { name: "plain", serverNames: ["_"], default: true, listeners: ["http"], routes: [] },
    {
      ...{ name: "site", serverNames: ["_"], default: true, listeners: ["https"] },
      clientCertificate: { ca: "/r/clients.pem", crl: "/r/revoked.pem" },
      errorPages: [{ statuses: [502], file: "/r/502.html" }],
      routes: [
        {
          ...{ name: "web", path: "/" },
          accessLog: { path: "/r/web.log" },
          errorLog: { path: "/r/webError.log" },
          action: { type: "proxy", upstream: "web", setHeadersFromCredential: { "X-Key": "/r/header" } },
        },
        { name: "media", path: "/media", action: { type: "staticFiles", directory: "/r/media" } },
      ],
    },
  ],
};

/** Objects whose fields the author names. */
const NAMED_BY_AUTHOR = new Set(["setHeadersFromCredential", "accessPolicies"]);

/** Where paths stand in a value: names of fields, without places in lists and names that the author chooses. */
function pathsIn(value: unknown, at: string): readonly (readonly [at: string, path: string])[] {
  if (typeof value === "string") return value.includes("/r/") ? [[at, value]] : [];
  if (Array.isArray(value)) return value.flatMap((each) => pathsIn(each, at));
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, each]) =>
    pathsIn(NAMED_BY_AUTHOR.has(name) ? Object.values(each as object) : each, `${at}.${name}`),
  );
}

/** Where the schema has paths. */
function pathFields(node: SchemaNode, at: string): readonly string[] {
  return variants([node]).flatMap(({ pattern, properties = {}, items, additionalProperties }) => [
    ...(pattern === FILE_PATH.pattern ? [at] : []),
    ...(items === undefined ? [] : pathFields(items, at)),
    ...(typeof additionalProperties === "object" ? pathFields(additionalProperties, at) : []),
    ...Object.entries(properties).flatMap(([name, inner]) => pathFields(inner, `${at}.${name}`)),
  ]);
}

test("every field that is a path is below the root", async () => {
  const file = join(openFolder(), "portico.json");
  writeFileSync(file, JSON.stringify(EVERY_PATH));
  let adjusted: ProxyConfig | undefined;
  const loaded = await loadConfig({ file, root: "/elsewhere", adjust: (config) => (adjusted = config) });
  // None of the files is there; what else is wrong with the document is a mistake of this test.
  const mistakes = loaded.ok ? [] : loaded.problems.filter(({ code }) => !code.startsWith("files."));
  expect(mistakes).toEqual([]);
  const found = pathsIn(adjusted, "");
  expect(found.filter(([, path]) => !path.startsWith("/elsewhere/r/"))).toEqual([]);
  expect([...new Set(found.map(([at]) => at))].sort()).toEqual(
    [...new Set(pathFields(configNode(), ""))].sort(),
  );
});
