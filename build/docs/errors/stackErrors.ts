import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { App, TerraformStack, TerraformVariable } from "cdktf";
import * as portico from "../../../src/index.js";
import { KubernetesFrontEnd } from "../../../src/kubernetes/index.js";
import { missingPackage } from "../../../src/constructs/providers/loaded.js";
import type { ErrorEntry } from "./entry.js";

/**
 * Code in a stack that has a `host`, a `proxy` with a virtual server `server`, and an upstream `app`; and a
 * `ContainerProxy` `containers` with a virtual server `site`.
 */
function entry(cause: string, means: string): ErrorEntry {
  return { means, cause, example: () => problemOf(cause) };
}

function problemOf(cause: string): portico.Problem {
  const outdir = mkdtempSync(path.join(tmpdir(), "portico-docs-"));
  try {
    const stack = new TerraformStack(new App({ outdir }), "stack");
    const host = new portico.Host(stack, "host", { address: "192.0.2.10", netmask: "255.255.255.0" });
    const proxy = new portico.ReverseProxy(stack, "proxy", { host });
    const http = proxy.addListener("http", { port: 80 });
    const server = proxy.addVirtualServer("site", { serverNames: ["_"], listeners: [http], default: true });
    const app = proxy.addUpstream("app", { url: "http://127.0.0.1:8000" });
    const containers = new portico.ContainerProxy(stack, "containers");
    const listeners = [containers.addListener("http", { port: 8080, publishedPort: 80 })];
    const site = containers.addVirtualServer("site", { serverNames: ["_"], listeners, default: true });
    const parts = { host, proxy, http, server, app, containers, site };
    const names = { ...portico, KubernetesFrontEnd, TerraformStack, TerraformVariable, stack, ...parts };
    // The page shows this text, so this text is what runs.
    new Function(...Object.keys(names), cause)(...Object.values(names));
    const all = stack.node.findAll();
    const [late] = [
      ...all.flatMap((one) =>
        one instanceof KubernetesFrontEnd || one instanceof portico.Host ? one.problems : [],
      ),
      ...all.flatMap((one) =>
        one instanceof portico.ReverseProxy || one instanceof portico.ProxyService ? one.problems : [],
      ),
    ];
    if (late !== undefined) return late;
  } catch (error) {
    if (error instanceof portico.ProblemError && error.problems.length === 1) return error.problems[0]!;
    throw error;
  } finally {
    rmSync(outdir, { recursive: true });
  }
  throw new Error(`an example of errors.md has no problem: ${cause}`);
}

/** The proxy `containers` in a cluster. */
const inCluster = (...props: readonly string[]): string => {
  const all = [
    'namespace: "files"',
    "proxy: containers",
    'image: "registry.example/portico:0.1.0"',
    ...props,
  ];
  return `new KubernetesFrontEnd(stack, "files", {\n${all.map((prop) => `  ${prop},\n`).join("")}});`;
};

/** Codes of stacks: they come when a construct is made. */
export const STACK_ERRORS = {
  "config.duplicate-id": entry(
    'proxy.addUpstream("app", { url: "http://127.0.0.1:8001" });',
    "Two constructs in one scope have the same id. Listeners, virtual servers and upstreams of a proxy have a scope for each kind, so only two of one kind can do this.",
  ),
  "config.missing-package": {
    means:
      "A package that only some stacks need is not there: `@cdktf/provider-local` for files on the machine that runs Terraform, `@cdktf/provider-tls` for self-signed certificates.",
    cause: "Delivery.local(); // without `npm install @cdktf/provider-local`",
    example: () => missingPackage("stack/files/DefaultPage", "@cdktf/provider-local"),
  },
  "container.no-host": entry(
    'new ContainerProxy(stack, "files").addListener("https", { port: 8443, tls: { material: TlsMaterial.selfSigned() } });',
    "A container has no host that Terraform could put files on: it finds its certificate in a Secret, or on a volume.",
  ),
  "kubernetes.acme": entry(
    `const material = TlsMaterial.acme({ email: "admin@example.org", agreeToTerms: true, names: ["example.org"] });
const https = containers.addListener("https", { port: 8443, publishedPort: 443, tls: { material } });
containers.addVirtualServer("secure", { serverNames: ["_"], listeners: [https], default: true });
${inCluster()}`,
    "Pods would each ask the authority for a certificate, even with one replica, since a rollout runs two for a while. In a cluster cert-manager asks once, and all pods read its Secret.",
  ),
  "kubernetes.bad-address": entry(
    `const more = containers.addListener("more", { port: 8081, address: "192.0.2.10" });
containers.addVirtualServer("second", { serverNames: ["_"], listeners: [more], default: true });
${inCluster()}`,
    "A listener or the health listener is on an address that pods do not have, or that the kubelet does not reach.",
  ),
  "kubernetes.bad-name": entry(
    inCluster('name: "Files"'),
    "Kubernetes does not accept the name. Most names are lower-case letters, digits and hyphens.",
  ),
  "kubernetes.bad-value": entry(
    inCluster('resources: { memory: "512 MB" }'),
    "Kubernetes does not accept the value, or two values exclude each other.",
  ),
  "kubernetes.changed-later": entry(
    `${inCluster()}
site.addRoute("late", { path: "/late", action: Action.respond(204) });`,
    "The objects are made when the front end is, and the proxy has changed since: what was added later would be missing.",
  ),
  "kubernetes.client-address": entry(
    inCluster('externalTrafficPolicy: "Cluster"'),
    "Nodes that pass a connection to a pod on another node replace the client's address with their own. Logs, limits per client and forwarding fields would name nodes.",
  ),
  "kubernetes.loopback-upstream": entry(
    `const local = containers.addUpstream("local", { url: "http://127.0.0.1:8000" });
site.addRoute("local", { path: "/local", action: Action.proxy(local) });
${inCluster()}`,
    "In a pod, loopback is the pod's own: the application is in other pods, and is reached by its Service.",
  ),
  "kubernetes.not-known": entry(
    `const { stringValue } = new TerraformVariable(stack, "url", { type: "string" });
const later = containers.addUpstream("later", { url: stringValue });
site.addRoute("later", { path: "/later", action: Action.proxy(later) });
${inCluster()}`,
    "Manifests are plain data, and a ConfigMap is named by the hash of its content, so every value has to be known.",
  ),
  "kubernetes.no-volume": entry(
    `site.addRoute("media", { path: "/media", action: Action.staticFiles("/srv/media") });
${inCluster()}`,
    "The proxy names a file or directory that its pods do not have: their file system is that of the image, and read-only.",
  ),
  "kubernetes.privileged-port": entry(
    `const more = containers.addListener("more", { port: 81 });
containers.addVirtualServer("second", { serverNames: ["_"], listeners: [more], default: true });
${inCluster()}`,
    "Pods run without privileges, so they listen above 1023. The Service publishes any port.",
  ),
  "kubernetes.shared-proxy": entry(
    `${inCluster()}
new KubernetesFrontEnd(stack, "more", { namespace: "more", proxy: containers, image: "registry.example/portico:0.1.0", resources: { memory: "1Gi" } });`,
    "Workers, limits and ticket keys of a proxy follow from how its pods run. Of two front ends with different pods, one would get the settings of the other.",
  ),
  "kubernetes.short-grace": entry(
    inCluster('transferGrace: "1h"'),
    "Kubernetes would kill a pod while the proxy still lets transfers finish.",
  ),
  "host.bad-ipv4": entry(
    'new Host(stack, "files", { address: "192.0.2.10/24" });',
    "The host's address is not an IPv4 address, or one that no host can keep: multicast, link-local, broadcast.",
  ),
  "host.bad-ipv6": entry(
    'new Host(stack, "files", { address: "192.0.2.10", ipv6Address: "fe80::1" });',
    "The address is not an IPv6 address, is only valid on its own network, or was marked as temporary or deprecated. Clients and DNS records need one that stays.",
  ),
  "host.bad-network": entry(
    'new Host(stack, "files", { address: "192.0.2.10", netmask: "255.255.255.0", gateway: "198.51.100.1" });',
    "Address, netmask and gateway contradict each other, so the host would not reach its gateway.",
  ),
  "host.bad-nameserver": entry(
    'new Host(stack, "files", { address: "192.0.2.10", nameservers: ["dns.example.org"] });',
    "A DNS server is given by its address: its name could not be looked up without it.",
  ),
  "host.bad-dhcp-range": entry(
    'new Host(stack, "files", { address: "192.0.2.10", dhcpRange: { from: "192.0.2.200", to: "192.0.2.100" } });',
    "The range does not consist of IPv4 addresses, or ends before it begins.",
  ),
  "host.inside-dhcp-range": entry(
    'new Host(stack, "files", { address: "192.0.2.150", dhcpRange: { from: "192.0.2.100", to: "192.0.2.200" } });',
    "The router may give the host's address to another machine, and then neither can be reached reliably.",
  ),
  "host.bad-virtual-address": entry(
    'new Host(stack, "files", { address: "192.0.2.10", netmask: "255.255.255.0", virtualAddress: "198.51.100.10" });',
    "Two hosts can pass an address to each other only within one network, and it must be neither's own.",
  ),
  "host.bad-name": entry(
    'new Host(stack, "files", { address: "192.0.2.10", publicName: "https://files.example.org/" });',
    "The value is not just a domain name: scheme, port, path and a trailing dot are not part of it.",
  ),
  "host.ipv6-only": entry(
    'new Host(stack, "files", { address: "2001:db8::10" });',
    "The host has no IPv4 address. Clients without IPv6 could not reach it, and IPv6-only hosts are not supported.",
  ),
  "host.bad-root": entry(
    'Delivery.local({ root: "" });',
    "The folder that a local delivery writes to is not a valid folder, so files could end up anywhere.",
  ),
  "network.bad-interface": entry(
    'new StaticNetwork(stack, "network", { host, interface: { name: "eth*" } });',
    "One interface must be given, with the kernel's name for it; a pattern could match several.",
  ),
  "network.bad-address": entry(
    'const other = new Host(stack, "other", { address: "192.0.2.11" });\nnew StaticNetwork(stack, "network", { host: other, interface: { name: "eth0" } });',
    "The host's props are not enough for systemd-networkd to set its address.",
  ),
  "config.hsts-self-signed": entry(
    "Mode.tls({ hsts: {} });",
    "Browsers let no user past a certificate error on a name that they know by HSTS, so users who made an exception for a self-signed certificate would be locked out.",
  ),
  "config.everyone-trusted": entry(
    'new ReverseProxy(stack, "behind", { host, trustedProxies: ["0.0.0.0/0"] });',
    "With every address in `trustedProxies` or `proxyProtocol.from`, each client may say who it is: its address, its identity, the scheme. Set `trustEveryone` only where something else keeps everyone but your proxies away.",
  ),
  "config.private-directory": entry(
    'server.addRoute("etc", { path: "/etc", action: Action.staticFiles("/etc/portico/tls") });',
    "Everyone on the network could read keys, secrets or settings as far as their permissions allow it, or will allow it one day.",
  ),
  "pair.no-ssh": entry(
    `new FrontEndPair(stack, "pair", {
  hosts: [
    { address: "192.0.2.11", interface: "eth0", delivery: Delivery.local() },
    { address: "192.0.2.12", interface: "eth0", delivery: Delivery.ssh({ verifyHostKey: false }) },
  ],
  virtualAddress: "192.0.2.20",
  mode: Mode.plain(),
  installDirectory: "/srv/sync",
});`,
    "The hosts of a pair share a secret, which goes from one to the other over ssh and is never in Terraform's state.",
  ),
  "firewall.loopback-port": entry(
    'new Firewall(stack, "firewall", { host, ports: [22, 80, 8000], loopbackPorts: [8000] });',
    "The port would be open to everyone, although what listens there must be reached through the proxy only.",
  ),
  "firewall.locks-out": entry(
    'new Firewall(stack, "firewall", { host, ports: [80, 443] });',
    "The host could be reached on its console only. `acceptLockOut` says that this is intended.",
  ),
  "unit.fastcgi-start": entry(
    'new ApplicationSettings(stack, "settings", { host, scheme: "https", startCommand: ["/srv/sync/web.sh", "start-fastcgi"] });',
    "The proxy speaks HTTP to the web application, but the application's FastCGI variant does not.",
  ),
  "unit.no-access": entry(
    `server.addRoute("shared", { path: "/shared", action: Action.staticFiles("/tmp/shared") });
new ProxyService(stack, "service", { proxy, runtimeBundle: process.execPath });`,
    "The unit of the proxy lets it write in its log directory only, and gives it private, empty directories in place of /tmp and /var/tmp.",
  ),
  "unit.bad-value": entry(
    'new SystemdUnit(stack, "unit", { host, name: "app.service", unit: { Service: { ExecStart: { command: ["bin/app"] } } } });',
    "A value does not fit into a unit file: a directive that systemd does not have, a program without its full path, control characters.",
  ),
  "unit.missing-command": entry(
    'new SystemdUnit(stack, "unit", { host, name: "app.service", unit: { Service: { User: "app" } } });',
    "systemd refuses a service that starts nothing.",
  ),
  "unit.secret-in-environment": entry(
    'new ApplicationDaemons(stack, "daemons", { host, webApplication: { command: ["/srv/sync/web"], type: "exec", user: "sync", environment: { DB_PASSWORD: "x" } } });',
    "Everyone on the host can read a unit and the environment of its service, and Terraform's state contains both.",
  ),
  "settings.bad-value": entry(
    'new ApplicationSettings(stack, "settings", { host, scheme: "https", fileServer: { host: "file server" } });',
    "The value is written into the application's own settings files, where it would be read as something else.",
  ),
  "files.duplicate-path": entry(
    'new HostFile(stack, "a", { host, path: "/etc/motd", content: "a" });\nnew HostFile(stack, "b", { host, path: "/etc/motd", content: "b" });',
    "Two files of a stack would overwrite each other on every apply. Two front ends have the same files, units and ports, so a host has one.",
  ),
  "delivery.no-activation": entry(
    'const far = new Host(stack, "far", { address: "192.0.2.11", delivery: Delivery.ssh({ verifyHostKey: false }) });\nnew HostFile(stack, "motd", { host: far, path: "/etc/motd", content: "" });',
    "Over ssh, files are uploaded next to each other and take effect together, by an activation. Without one nothing would ever be put into its place, and every apply would succeed.",
  ),
  "delivery.second-activation": entry(
    'const service = new ProxyService(stack, "service", { proxy });\nnew Activation(stack, "first", { service });\nnew Activation(stack, "second", { service });',
    "An activation stops and removes what its document does not name, so two of them would undo each other.",
  ),
  "delivery.other-stack": entry(
    'const far = new Host(stack, "far", { address: "192.0.2.11", delivery: Delivery.ssh({ verifyHostKey: false }) });\nnew HostFile(new TerraformStack(stack, "other"), "motd", { host: far, path: "/etc/motd", content: "" });',
    "Terraform orders the resources of one stack only, and a host's files have to come between its deployment and its activation.",
  ),
  "delivery.bad-connection": entry(
    'Delivery.ssh({ hostKey: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA==", user: "deploy" });',
    "With these options Terraform could not log in, or could not change the host once it has.",
  ),
  "delivery.unverified-host": entry(
    "Delivery.ssh();",
    "Without the server's key, Terraform cannot know whether the server that answers is the host, and it would send it the certificate's private key.",
  ),
  "delivery.clear-text-key": entry(
    'Delivery.ssh({ verifyHostKey: false, privateKey: "-----BEGIN OPENSSH PRIVATE KEY-----" });',
    "A literal would be part of the synthesized stack, a file that is kept and shared.",
  ),
  "delivery.key-at-destroy": entry(
    'const key = new TerraformVariable(stack, "key", { sensitive: true });\nDelivery.ssh({ verifyHostKey: false, privateKey: key.stringValue });',
    "Terraform logs in again to remove the deployment, and has no variables then.",
  ),
  "delivery.open-script-path": entry(
    'Delivery.ssh({ verifyHostKey: false, scriptPath: "/tmp/portico.sh" });',
    "Every user of the host could replace the script that Terraform runs as root.",
  ),
  "node.bad-pin": entry(
    'NodeRuntime.pinned({ version: "latest" });',
    "The binary for the host is given by its exact version and its hash, so that it is always the same one.",
  ),
} satisfies Record<string, ErrorEntry>;
