import { TerraformVariable } from "cdktf";
import { authorityName } from "../../src/constructs/proxy/acme.js";
import {
  Application,
  FrontEnd,
  type FrontEndProps,
  Host,
  Mode,
  ProblemError,
  ReverseProxy,
  TlsMaterial,
  TlsPolicy,
} from "../../src/index.js";
import { renderProxyConfig, synthesizedFile } from "../../src/testing/index.js";
import { sayings } from "../../testkit/sayings.js";
import { newStack, synthesize } from "../../testkit/stacks.js";

/** `TlsMaterial.acme`: what it becomes in the config and in the unit. */

const ACCOUNT = { email: "admin@example.org", agreeToTerms: true } as const;
const acme = (more: object = {}) => TlsMaterial.acme({ ...ACCOUNT, ...more });

function frontEnd(host: FrontEndProps["host"], material = acme(), more: object = {}): FrontEnd {
  return new FrontEnd(newStack(), "files", {
    host,
    mode: Mode.tls({ material }),
    application: Application.fileSync({ installDirectory: "/srv/sync" }),
    service: { runtimeBundle: __filename },
    ...more,
  });
}

const said = sayings("acme");

const codesOf = (make: () => unknown): string[] => {
  try {
    make();
    return [];
  } catch (error) {
    if (error instanceof ProblemError) return said(error.problems).map(({ code, path }) => `${code} ${path}`);
    return [(error as Error).message];
  }
};

test.each<[string | undefined, string[], string]>([
  [undefined, [], "letsencrypt"],
  ["https://acme-v02.api.letsencrypt.org/directory", ["ca.example"], "letsencrypt"],
  ["https://ca.example/directory", [], "ca.example"],
  ["https://ca.example:8443/directory", ["ca.example"], "ca.example-2"],
  ["https://ca.example/directory", ["ca.example", "ca.example-2"], "ca.example-3"],
  ["https://[2001:db8::1]/directory", [], "2001-db8--1-"],
  ["https://-a_b.example/directory", [], "a-b.example"],
  [`https://${"a".repeat(61)}.example/directory`, [], "a".repeat(60)],
  ["${var.directory}", [], "authority"],
])("the authority %p beside %j is called %s", (directory, taken, name) => {
  const late = directory === "${var.directory}";
  const variable = new TerraformVariable(newStack(), "directory", { type: "string" });
  expect(authorityName(late ? variable.stringValue : directory, taken)).toBe(name);
});

test("the certificate is for the host's name, on IPv4 and IPv6 alike; there is one authority", () => {
  const host = { address: "8.8.8.8", ipv6Address: "2001:4860::8", publicName: "files.example.org" };
  const { certificateAuthorities, listeners } = renderProxyConfig(frontEnd(host));
  expect(certificateAuthorities).toEqual([
    {
      name: "letsencrypt",
      directory: "https://acme-v02.api.letsencrypt.org/directory",
      email: "admin@example.org",
      agreeToTerms: true,
    },
  ]);
  const tls = {
    acme: { authority: "letsencrypt", names: ["files.example.org"] },
    certificates: [],
    dhparam: "/etc/portico/tls/dhparam2048.pem",
    policy: "file-sync",
  };
  expect(listeners.filter(({ port }) => port === 443).map((one) => one.tls)).toEqual([tls, tls]);
});

test("without a name it is for the host's addresses, and for further names of the application", () => {
  const files = frontEnd({ address: "8.8.8.8", ipv6Address: "2001:4860::8" }, acme(), {
    additionalServerNames: ["files.example.org"],
  });
  expect(renderProxyConfig(files).listeners[2]!.tls!.acme!.names).toEqual([
    "8.8.8.8",
    "2001:4860::8",
    "files.example.org",
  ]);
});

test("a virtual server's own certificate is for its names; a separate account is a separate authority", () => {
  const files = frontEnd({ address: "8.8.8.8", publicName: "files.example.org" });
  const add = (id: string, tls: TlsMaterial) =>
    files.proxy.addVirtualServer(id, {
      serverNames: [`${id}.example.org`],
      listeners: [files.httpsListener],
      tls,
    });
  add("office", acme({ keyType: "rsa-4096" }));
  add("shop", acme({ profile: "classic" }));
  const { certificateAuthorities, listeners } = renderProxyConfig(files);
  expect(certificateAuthorities.map(({ name, profile }) => [name, profile])).toEqual([
    ["letsencrypt", undefined],
    ["letsencrypt-2", "classic"],
  ]);
  expect(listeners[1]!.tls!.acme!.names).toEqual(["files.example.org"]);
  expect(listeners[1]!.tls!.certificates).toEqual([
    { acme: { authority: "letsencrypt", names: ["office.example.org"], keyType: "rsa-4096" } },
    { acme: { authority: "letsencrypt-2", names: ["shop.example.org"] } },
  ]);
});

test("a private authority is named after its host, and its files are passed to the service", () => {
  const files = frontEnd(
    { address: "192.168.1.10" },
    acme({
      directory: "https://ca.internal:9000/acme/acme/directory",
      roots: "/etc/portico/ca-roots.pem",
      externalAccountBinding: { keyId: "kid-1", keyFile: "/etc/portico/acme-eab.key" },
      challenge: "tls-alpn-01",
    }),
  );
  expect(renderProxyConfig(files).certificateAuthorities).toMatchObject([
    { name: "ca.internal", challenge: "tls-alpn-01", roots: "/etc/portico/ca-roots.pem" },
  ]);
  const { content } = synthesizedFile(files, "/etc/systemd/system/portico.service");
  expect(content!.split("\n").filter((line) => /^(LoadCredential|StateDirectory)/.test(line))).toEqual([
    "LoadCredential=dhparam2048.pem:/etc/portico/tls/dhparam2048.pem",
    "LoadCredential=ca-roots.pem:/etc/portico/ca-roots.pem",
    "LoadCredential=acme-eab.key:/etc/portico/acme-eab.key",
    "StateDirectory=portico-certificates",
    "StateDirectoryMode=0700",
  ]);
});

const SERVER = { address: "192.0.2.53" };
test.each<[string, object, string[]]>([
  ["by updates", { type: "rfc2136", server: SERVER, zone: "example.org", keyFile: "/etc/k" }, ["k:/etc/k"]],
  [
    "by a program",
    { type: "program", command: "/usr/bin/p", credentialFile: "/etc/token" },
    ["token:/etc/token"],
  ],
  ["by the API of a provider", { type: "cloudflare", tokenFile: "/etc/token" }, ["token:/etc/token"]],
  [
    "by a provider's own server",
    { type: "desec", tokenFile: "/etc/t", url: "https://d.example.net/api/v1", roots: "/etc/r" },
    ["t:/etc/t", "r:/etc/r"],
  ],
  [
    "by acme-dns",
    { type: "acme-dns", url: "https://a.example.net", accountsFile: "/etc/a", roots: "/etc/r" },
    ["a:/etc/a", "r:/etc/r"],
  ],
])("names are proved %s, whose secrets are passed to the service", (_, dns, credentials) => {
  const files = frontEnd({ address: "10.0.0.1", publicName: "files.example.org" }, acme({ dns }), {
    additionalServerNames: ["www.example.org"],
  });
  expect(renderProxyConfig(files).certificateAuthorities).toMatchObject([{ dns }]);
  const { content } = synthesizedFile(files, "/etc/systemd/system/portico.service");
  const lines = content!.split("\n").filter((line) => line.startsWith("LoadCredential"));
  expect(lines.slice(1)).toEqual(credentials.map((one) => `LoadCredential=${one}`));
});

test("what is wrong with records is said of the option", () => {
  expect(codesOf(() => acme({ dns: { type: "rfc2136", server: SERVER, zone: "a", keyFile: "k" } }))).toEqual([
    "config.bad-file-path TlsMaterial.acme.dns.keyFile",
  ]);
  expect(codesOf(() => acme({ dns: { type: "dns" } }))).toEqual([
    "config.not-one-of TlsMaterial.acme.dns.type",
  ]);
  expect(codesOf(() => acme({ dns: { type: "cloudflare" } }))).toEqual([
    "config.missing-field TlsMaterial.acme.dns.tokenFile",
  ]);
  expect(codesOf(() => acme({ dns: { type: "hetzner", tokenFile: "/t", token: "x" } }))).toEqual([
    "config.unknown-field TlsMaterial.acme.dns.token",
  ]);
  const duck = { type: "duckdns", tokenFile: "/t" };
  expect(codesOf(() => acme({ names: ["house.duckdns.org", "*.house.duckdns.org"], dns: duck }))).toEqual([]);
  expect(codesOf(() => acme({ names: ["example.org"], dns: duck }))).toEqual([
    "acme.outside-zone TlsMaterial.acme.names[0]",
  ]);
  expect(codesOf(() => acme({ dns: { ...duck, alias: "example.net" } }))).toEqual([
    "acme.outside-zone TlsMaterial.acme.dns.alias",
  ]);
});

test("no secret and no certificate is in the stack; a front end without ACME has no state directory", () => {
  const files = frontEnd({ address: "8.8.8.8", publicName: "files.example.org" });
  const { resource } = synthesize(files.node.root.node.children[0] as never);
  expect(Object.keys(resource).filter((type) => type.startsWith("tls_"))).toEqual([]);
  const plain = frontEnd({ address: "8.8.8.8" }, TlsMaterial.selfSigned());
  expect(synthesizedFile(plain, "/etc/systemd/system/portico.service").content).not.toContain(
    "StateDirectory",
  );
});

test("names that are not public are refused where they come from", () => {
  const problems = renderProblems(frontEnd({ address: "192.168.1.10" }));
  expect(problems).toEqual(["acme.private-name files/Proxy/Listeners/https.tls.acme.names[0]"]);
  expect(codesOf(() => acme({ names: ["localhost"] }))).toEqual([
    "acme.private-name TlsMaterial.acme.names[0]",
  ]);
  expect(codesOf(() => acme({ names: ["printer.local"] }))).toEqual([
    "acme.private-name TlsMaterial.acme.names[0]",
  ]);
  expect(codesOf(() => acme({ names: ["localhost"], roots: "/r.pem" }))).toEqual([]);
});

test("other mistakes in the options are reported at the option", () => {
  expect(codesOf(() => acme({ names: ["*.example.org"] }))).toEqual([
    "acme.wildcard-challenge TlsMaterial.acme.names[0]",
  ]);
  expect(codesOf(() => acme({ email: "admin" }))).toEqual(["acme.bad-email TlsMaterial.acme.email"]);
  expect(codesOf(() => acme({ agreeToTerms: false }))).toEqual([
    "acme.terms-not-agreed TlsMaterial.acme.agreeToTerms",
  ]);
  expect(codesOf(() => acme({ directory: "http://ca.example.org/" }))).toEqual([
    "acme.bad-directory TlsMaterial.acme.directory",
  ]);
  expect(codesOf(() => acme({ keyType: "dsa" }))).toEqual(["config.not-one-of TlsMaterial.acme.keyType"]);
});

test("a type of key that the policy excludes is reported at the listener", () => {
  const material = acme({ keyType: "ecdsa-p256" });
  const host = { address: "8.8.8.8", publicName: "files.example.org" };
  expect(renderProblems(frontEnd(host, material))).toEqual([
    "acme.key-type files/Proxy/Listeners/https.tls.acme.keyType",
  ]);
  const mode = Mode.tls({ material, policy: TlsPolicy.mozillaIntermediate() });
  expect(renderProblems(frontEnd(host, material, { mode }))).toEqual([]);
});

test("a certificate of a virtual server without an https listener would not be used", () => {
  const stack = newStack();
  const proxy = new ReverseProxy(stack, "proxy", { host: new Host(stack, "host", { address: "8.8.8.8" }) });
  const http = proxy.addListener("http", { port: 80 });
  const add = () => proxy.addVirtualServer("s", { serverNames: ["_"], listeners: [http], tls: acme() });
  expect(codesOf(add)).toEqual(["config.tls-unexpected stack/proxy/VirtualServers/s.tls"]);
});

test("activation requires certificates only on request", () => {
  const host = { address: "8.8.8.8", publicName: "files.example.org" };
  const required = frontEnd(host, acme(), { activation: { requireCertificate: true } });
  expect(required.activation!.deployment.requireCertificate).toBe(true);
  expect(
    frontEnd(host, acme(), { activation: {} }).activation!.deployment.requireCertificate,
  ).toBeUndefined();
});

function renderProblems(files: FrontEnd): string[] {
  return said(files.proxy.problems).map(({ code, path }) => `${code} ${path.replace(/^stack\//, "")}`);
}
