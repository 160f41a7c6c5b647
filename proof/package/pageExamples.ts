import { readdirSync, readFileSync } from "node:fs";
import * as portico from "../../src/index.js";
import { ROOT } from "../../build/paths.js";
import { codeBlocks } from "../../testkit/markdown.js";

/** Pages whose blocks run elsewhere: as they are generated, and in tests of what only they need. */
const ELSEWHERE = ["errors.md", "kubernetes.md", "unit-tests.md", "versions.md"];

const HOST_KEY = "AAAAE2VjZHNhLXNoYTItbmlzdHAyNTY=";

/** What pages take for known, in the words that they use for it. */
const KNOWN: Readonly<Record<string, string>> = {
  account: '{ email: "admin@example.org", agreeToTerms: true }',
  certificate: '"/etc/tls/chain.pem"',
  delivery: 'Delivery.local({ root: "out" })',
  deployKey: 'new TerraformVariable(this, "deployKey", { sensitive: true })',
  files: 'new FrontEnd(this, "files", { ...props, proxy: { trustedProxies: ["10.0.0.0/16"] } })',
  front: 'new FrontEnd(this, "front", { host, mode: Mode.tls() })',
  host: 'new Host(this, "host", { address: "192.0.2.10", publicName: "files.example.org", delivery })',
  hostKey: `"ecdsa-sha2-nistp256 ${HOST_KEY}"`,
  https: 'proxy.addListener("https", { port: 443, tls })',
  key: '"/etc/tls/key.pem"',
  pairProps: `((): ConstructorParameters<typeof FrontEndPair>[2] => {
    ${codeBlocks("docs/pair.md", "ts")[0]!.replace('new FrontEndPair(this, "pair", ', "return (")}
  })()`,
  props: '{ host, mode: Mode.tls(), application: Application.fileSync({ installDirectory: "/srv/sync" }) }',
  mode: "Mode.tls()",
  proxy: 'new ReverseProxy(this, "proxy", { host })',
  server: '{ ipv4Address: new TerraformVariable(this, "address", {}).stringValue }',
  service: `((): ProxyService => {
    const listeners = [proxy.addListener("http", { address: "0.0.0.0", port: 80 })];
    proxy.addVirtualServer("site", { serverNames: ["_"], listeners, default: true });
    return new ProxyService(this, "service", { proxy });
  })()`,
  stack: "this",
  tls: "{ material: TlsMaterial.fromFiles({ certificate, key }) }",
  web: 'files.proxy.addUpstream("other", { url: "http://127.0.0.1:3000" })',
  zone: '{ name: new TerraformVariable(this, "zone", {}).stringValue }',
};

/** A listener needs a response for every name. */
const SITE = 'proxy.addVirtualServer("site", { serverNames: ["_"], listeners: [https], default: true });';
const LISTENER =
  'const https = proxy.addListener("https", { port: 443, tls: { material: TlsMaterial.selfSigned() } });';

/** What a page about one part of a proxy leaves out. */
function rest(code: string): string {
  if (code.includes("const https =")) return SITE;
  return code.includes("const proxy =") && !code.includes("addListener") ? `${LISTENER}\n${SITE}` : "";
}

/** What is known of a name is written before the first code that uses the name. */
function withKnown(code: string): string {
  const written = new Map<string, string>();
  const visit = (text: string): void => {
    const plain = text.replace(/"[^"\n]*"|\/\/.*/g, "");
    for (const [name, value] of Object.entries(KNOWN)) {
      const used = new RegExp(`(?<!\\w|const |(?<!\\.\\.)\\.)${name}\\b(?!:)`).test(plain);
      if (!used || written.has(name) || new RegExp(`const ${name}\\b`).test(code)) continue;
      visit(value);
      written.set(name, `const ${name} = ${value};\n`);
    }
  };
  visit(code);
  return [...written.values()].join("") + code;
}

/** A block that is props belongs to the construct of its page. */
function statements(page: string, block: string): string {
  if (!/^\w+: /.test(block)) return block;
  if (block.startsWith("action: ")) return `files.site.addRoute("added", { path: "/added", ${block} });`;
  if (page === "pair.md") return `new FrontEndPair(this, "pair", { ...pairProps, ${block} });`;
  return `new FrontEnd(this, "files", { ...props, ${block} });`;
}

/** A block as a program: complete as it is, or in a stack. */
function program(page: string, block: string): string {
  if (block.includes("app.synth();")) return block;
  const imports = block.match(/^import .*\n/gm) ?? [];
  const known = withKnown(statements(page, block.replace(/^import .*\n/gm, "")));
  const code = known + rest(known);
  const exported = Object.keys(portico).filter((name) => new RegExp(`\\b${name}\\b`).test(code));
  const missing = exported.filter((name) => !imports.join("").includes(name));
  return `
import { App, Aspects, TerraformOutput, TerraformStack, TerraformVariable } from "cdktf";
import type { Construct } from "constructs";
import { ${missing.join(", ")} } from "cdktf-portico";
${imports.join("")}
class Page extends TerraformStack {
  constructor(scope: Construct, id: string) {
    super(scope, id);
${code}
  }
}
const app = new App();
new Page(app, "portico");
app.synth();
`;
}

const pages = ["", "applications/"].flatMap((folder) =>
  readdirSync(`${ROOT}/docs/${folder}`)
    .filter((name) => name.endsWith(".md") && !ELSEWHERE.includes(name))
    .map((name) => `${folder}${name}`),
);

/**
 * The programs of `examples/`, and one of each block of the pages, by the place: `pair.md-2.ts` is the second one of its
 * page.
 */
export const EXAMPLES: Readonly<Record<string, string>> = Object.fromEntries([
  ...readdirSync(`${ROOT}/examples`)
    .filter((name) => name.endsWith(".ts"))
    .map((name) => [`example-${name}`, readFileSync(`${ROOT}/examples/${name}`, "utf8")]),
  ...["../README.md", ...pages].flatMap((page) =>
    codeBlocks(`docs/${page}`, "ts").map((block, index) => [
      `${page.replace("../", "").replace("/", "-")}-${index + 1}.ts`,
      program(page, block).replaceAll("AAAA…", HOST_KEY).replaceAll(", …", ""),
    ]),
  ),
]);
