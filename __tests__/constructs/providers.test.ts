import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { LocalProvider } from "@cdktf/provider-local/lib/provider";
import { TerraformStack, Testing } from "cdktf";
import { Application, FrontEnd, Mode } from "../../src/index.js";

/** Packages of providers that a process loads which uses the built package, and the providers that a stack has. */

const PROGRAM = `
const [entry, what, missing] = process.argv.slice(1);
const Module = require("node:module");
const find = Module._resolveFilename;
Module._resolveFilename = function (name, ...more) {
  const own = missing !== undefined && name.startsWith("@cdktf/" + missing + "/");
  // A folder that has no packages.
  return find.call(this, name, ...(own ? [{ ...more[0], paths: [] }] : more));
};
const { App, TerraformStack, Testing } = require("cdktf");
const { Application, Delivery, FrontEnd, Mode, TlsMaterial } = require(entry);
const ssh = Delivery.ssh({ hostKey: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB1Ys0xCkSTpFLUZbP0GZtGEBeSTyc1pfLaSZ2BdZzzz" });
const files = TlsMaterial.fromFiles({ certificate: "/c.pem", key: "/k.pem" });
const [delivery, material] = { none: [], ssh: [ssh, files], local: [Delivery.local(), files], tls: [ssh, TlsMaterial.selfSigned()] }[what];
if (delivery !== undefined) {
  const stack = new TerraformStack(Testing.app(), "stack");
  new FrontEnd(stack, "files", {
    host: { address: "192.0.2.10", delivery }, mode: Mode.tls({ material }), application: Application.fileSync({ installDirectory: "/srv/sync" }),
  });
  Testing.synth(stack);
}
const loaded = Object.keys(require.cache).map((file) => /provider-(local|tls)/.exec(file)?.[1]);
console.log([...new Set(loaded)].filter(Boolean).join());
`;

function run(...args: string[]) {
  const entry = join(__dirname, "../../dist/lib/index.js");
  return spawnSync(process.execPath, ["-e", PROGRAM, entry, ...args], { encoding: "utf8" });
}

test.each([
  ["none", ""],
  ["ssh", ""],
  ["local", "local"],
  ["tls", "tls"],
])("a stack loads the packages that it uses: %s", (what, loaded) => {
  expect(run(what).stdout.trim().split("\n").at(-1)).toBe(loaded);
});

const providersOf = (stack: TerraformStack): unknown =>
  (JSON.parse(Testing.synth(stack, true)) as { terraform: { required_providers: unknown } }).terraform
    .required_providers;

const stackOf = (mode: Mode): TerraformStack => {
  const stack = new TerraformStack(Testing.app(), "stack");
  new FrontEnd(stack, "files", {
    host: { address: "192.0.2.10" },
    mode,
    application: Application.fileSync({ installDirectory: "/srv/sync" }),
  });
  return stack;
};

test("a stack gets the providers that it uses and does not have, when it is synthesized", () => {
  const local = { source: "hashicorp/local", version: "~> 2.4" };
  expect(providersOf(stackOf(Mode.plain()))).toEqual({ local });
  const both = stackOf(Mode.tls());
  expect(providersOf(both)).toEqual({ local, tls: { source: "hashicorp/tls", version: "~> 4.0" } });
  expect(providersOf(both)).toEqual(providersOf(stackOf(Mode.tls())));
  const own = stackOf(Mode.plain());
  new LocalProvider(own, "later");
  expect(providersOf(own)).toEqual({ local: { source: "hashicorp/local", version: "2.6.1" } });
});

test("a cluster's package that is missing is named when a front end is made, and not when its module is loaded", () => {
  const program = `
const Module = require("node:module");
const find = Module._resolveFilename;
Module._resolveFilename = function (name, ...more) {
  const own = name.startsWith("@cdktf/provider-kubernetes/");
  return find.call(this, name, ...(own ? [{ ...more[0], paths: [] }] : more));
};
const { TerraformStack, Testing } = require("cdktf");
const [index, cluster] = process.argv.slice(1);
const { Action, ContainerProxy } = require(index);
const { KubernetesFrontEnd } = require(cluster);
const stack = new TerraformStack(Testing.app(), "stack");
const proxy = new ContainerProxy(stack, "proxy");
const listeners = [proxy.addListener("http", { port: 8080, publishedPort: 80 })];
const site = proxy.addVirtualServer("site", { serverNames: ["_"], listeners, default: true });
site.addRoute("all", { path: "/", action: Action.respond(204) });
console.log("loaded");
new KubernetesFrontEnd(stack, "pods", { name: "portico", namespace: "web", image: "portico:1", proxy, transferGrace: "10m" });`;
  const lib = join(__dirname, "../../dist/lib");
  const args = ["-e", program, join(lib, "index.js"), join(lib, "kubernetes/index.js")];
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  expect(stdout).toBe("loaded\n");
  expect(stderr).toContain(
    "stack/pods: needs the package @cdktf/provider-kubernetes, which is not installed [config.missing-package]",
  );
});

test.each([
  ["local", "provider-local", "stack/files"],
  ["tls", "provider-tls", "stack/files/Proxy"],
])("a package that is missing is named: %s", (what, missing, at) => {
  const { status, stderr } = run(what, missing);
  expect(status).toBe(1);
  expect(stderr).toContain(
    `needs the package @cdktf/${missing}, which is not installed [config.missing-package]`,
  );
  expect(stderr).toContain(`npm install @cdktf/${missing}`);
  expect(stderr).toContain(`${at}`);
});
