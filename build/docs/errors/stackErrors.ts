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
        one instanceof KubernetesFrontEnd || one instanceof portico.Host || one instanceof portico.Fail2ban
          ? one.problems
          : [],
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
    "Two constructs in one scope have the same id. A proxy has separate scopes for listeners, virtual servers and upstreams, so only two constructs of the same kind can conflict.",
  ),
  "config.missing-package": {
    means:
      "A package that only some stacks need is not installed: `@cdktf/provider-local` for files on the machine that runs Terraform, `@cdktf/provider-tls` for self-signed certificates.",
    cause: "Delivery.local(); // without `npm install @cdktf/provider-local`",
    example: () => missingPackage("stack/files/DefaultPage", "@cdktf/provider-local"),
  },
  "container.no-host": entry(
    'new ContainerProxy(stack, "files").addListener("https", { port: 8443, tls: { material: TlsMaterial.selfSigned() } });',
    "Terraform cannot write files into a container: a container reads its certificate from a Secret or from a volume.",
  ),
  "compose.loopback-upstream": entry(
    `const local = containers.addUpstream("local", { url: "http://127.0.0.1:8000" });
site.addRoute("local", { path: "/local", action: Action.proxy(local) });
containers.composeFiles({ image: "portico:1" });`,
    "In a container, a loopback address or a Unix socket without a mount leads to the container itself. The application runs in other containers, which the proxy reaches by the names of their services.",
  ),
  "compose.no-volume": entry(
    `site.addRoute("media", { path: "/media", action: Action.staticFiles("/srv/media") });
containers.composeFiles({ image: "portico:1" });`,
    "The proxy names a file or directory that its container does not have. The file system of the container is the file system of the image, and read-only.",
  ),
  "kubernetes.acme": entry(
    `const material = TlsMaterial.acme({ email: "admin@example.org", agreeToTerms: true, names: ["example.org"] });
const https = containers.addListener("https", { port: 8443, publishedPort: 443, tls: { material } });
containers.addVirtualServer("secure", { serverNames: ["_"], listeners: [https], default: true });
${inCluster()}`,
    "Each pod would request a certificate from the authority, even with one replica, because a rollout runs two pods for a while. In a cluster, cert-manager requests the certificate once, and all pods read its Secret.",
  ),
  "kubernetes.bad-address": entry(
    `const more = containers.addListener("more", { port: 8081, address: "192.0.2.10" });
containers.addVirtualServer("second", { serverNames: ["_"], listeners: [more], default: true });
${inCluster()}`,
    "A listener is on an address that pods do not have, or the health listener is on an address that the kubelet cannot reach.",
  ),
  "kubernetes.bad-name": entry(
    inCluster('name: "Files"'),
    "Kubernetes does not accept the name. Most names consist of lower-case letters, digits and hyphens.",
  ),
  "kubernetes.bad-value": entry(
    inCluster('resources: { memory: "512 MB" }'),
    "Kubernetes does not accept the value, the value has no effect in a cluster, or two values exclude each other.",
  ),
  "kubernetes.changed-later": entry(
    `${inCluster()}
site.addRoute("late", { path: "/late", action: Action.respond(204) });`,
    "The KubernetesFrontEnd creates its objects in its constructor, and the proxy was changed after that, so the objects would lack the change.",
  ),
  "kubernetes.client-address": entry(
    inCluster('externalTrafficPolicy: "Cluster"'),
    "Nodes that pass a connection to a pod on another node replace the client's address with their own. Logs, limits per client and forwarding fields would name nodes.",
  ),
  "kubernetes.loopback-upstream": entry(
    `const local = containers.addUpstream("local", { url: "http://127.0.0.1:8000" });
site.addRoute("local", { path: "/local", action: Action.proxy(local) });
${inCluster()}`,
    "In a pod, a loopback address or a Unix socket leads to the pod itself. The application runs in other pods, which the proxy reaches by their Service.",
  ),
  "kubernetes.not-known": entry(
    `const { stringValue } = new TerraformVariable(stack, "url", { type: "string" });
const later = containers.addUpstream("later", { url: stringValue });
site.addRoute("later", { path: "/later", action: Action.proxy(later) });
${inCluster()}`,
    "Manifests are plain data, and the name of a ConfigMap contains the hash of its content, so every value must be known at synthesis.",
  ),
  "kubernetes.no-volume": entry(
    `site.addRoute("media", { path: "/media", action: Action.staticFiles("/srv/media") });
${inCluster()}`,
    "The proxy names a file or directory that its pods do not have. The file system of a pod is the file system of the image, and read-only.",
  ),
  "kubernetes.privileged-port": entry(
    `const more = containers.addListener("more", { port: 81 });
containers.addVirtualServer("second", { serverNames: ["_"], listeners: [more], default: true });
${inCluster()}`,
    "Pods run without privileges, so they can listen only on ports above 1023. The Service can publish any port.",
  ),
  "kubernetes.shared-proxy": entry(
    `${inCluster()}
new KubernetesFrontEnd(stack, "more", { namespace: "more", proxy: containers, image: "registry.example/portico:0.1.0", resources: { memory: "1Gi" } });`,
    "The resources and ticket keys of the pods determine the workers, limits and ticket keys of their proxy. If two front ends with different pods shared a proxy, one would get the settings of the other.",
  ),
  "kubernetes.short-grace": entry(
    inCluster('transferGrace: "1h"'),
    "Kubernetes would kill a pod while the proxy still waits for the end of transfers.",
  ),
  "host.bad-ipv4": entry(
    'new Host(stack, "files", { address: "192.0.2.10/24" });',
    "The address is not an IPv4 address, or it cannot be the permanent address of a host, such as a multicast, link-local or broadcast address.",
  ),
  "host.bad-ipv6": entry(
    'new Host(stack, "files", { address: "192.0.2.10", ipv6Address: "fe80::1" });',
    "The address is not an IPv6 address, is valid only on its own network, or is marked as temporary or deprecated. Clients and DNS records need a permanent address.",
  ),
  "host.bad-network": entry(
    'new Host(stack, "files", { address: "192.0.2.10", netmask: "255.255.255.0", gateway: "198.51.100.1" });',
    "Address, netmask and gateway contradict each other, so the host would not reach its gateway.",
  ),
  "host.bad-nameserver": entry(
    'new Host(stack, "files", { address: "192.0.2.10", nameservers: ["dns.example.org"] });',
    "A DNS server must be an IP address: without a DNS server, its name could not be resolved.",
  ),
  "host.bad-dhcp-range": entry(
    'new Host(stack, "files", { address: "192.0.2.10", dhcpRange: { from: "192.0.2.200", to: "192.0.2.100" } });',
    "The range does not consist of IPv4 addresses, or ends before it begins.",
  ),
  "host.inside-dhcp-range": entry(
    'new Host(stack, "files", { address: "192.0.2.150", dhcpRange: { from: "192.0.2.100", to: "192.0.2.200" } });',
    "The router may assign the host's address to another machine, and then clients can reach neither of them reliably.",
  ),
  "host.bad-virtual-address": entry(
    'new Host(stack, "files", { address: "192.0.2.10", netmask: "255.255.255.0", virtualAddress: "198.51.100.10" });',
    "The virtual address moves between two hosts, so it must be in the network of both hosts, and it must not be the own address of a host.",
  ),
  "host.bad-name": entry(
    'new Host(stack, "files", { address: "192.0.2.10", publicName: "https://files.example.org/" });',
    "The value is not a domain name. A scheme, a port, a path or a trailing dot is not part of a domain name.",
  ),
  "host.ipv6-only": entry(
    'new Host(stack, "files", { address: "2001:db8::10" });',
    "The host has no IPv4 address, so clients without IPv6 could not reach it. IPv6-only hosts are not supported.",
  ),
  "host.bad-root": entry(
    'Delivery.local({ root: "" });',
    "The path of the folder for a local delivery is not valid, so files could be written to a wrong place.",
  ),
  "network.bad-interface": entry(
    'new StaticNetwork(stack, "network", { host, interface: { name: "eth*" } });',
    "Set exactly one interface, by the kernel's name for it or by its MAC address; a pattern could match several interfaces.",
  ),
  "network.bad-address": entry(
    'const other = new Host(stack, "other", { address: "192.0.2.11" });\nnew StaticNetwork(stack, "network", { host: other, interface: { name: "eth0" } });',
    "A prop that systemd-networkd needs for the host's address is missing or wrong.",
  ),
  "config.hsts-self-signed": entry(
    "Mode.tls({ hsts: {} });",
    "A browser offers no exception for a certificate error on a name for which it has stored HSTS, so users who had accepted the self-signed certificate would be locked out.",
  ),
  "config.everyone-trusted": entry(
    'new ReverseProxy(stack, "behind", { host, trustedProxies: ["0.0.0.0/0"] });',
    "If `trustedProxies` or `proxyProtocol.from` matches every address, any client can set its own address, identity and scheme. Set `trustEveryone` only if a firewall or a network lets nothing but your proxies connect.",
  ),
  "config.private-directory": entry(
    'server.addRoute("etc", { path: "/etc", action: Action.staticFiles("/etc/portico/tls") });',
    "Every client could read keys, secrets or settings in this directory, as far as the permissions of the files allow it now or later.",
  ),
  "pair.no-ssh": entry(
    `new FrontEndPair(stack, "pair", {
  hosts: [
    { address: "192.0.2.11", interface: "eth0", delivery: Delivery.local() },
    { address: "192.0.2.12", interface: "eth0", delivery: Delivery.ssh({ verifyHostKey: false }) },
  ],
  virtualAddress: "192.0.2.20",
  mode: Mode.plain(),
  application: Application.fileSync({ installDirectory: "/srv/sync" }),
});`,
    "The two hosts of a pair share a secret, which Terraform copies between them over ssh and never stores in its state.",
  ),
  "firewall.loopback-port": entry(
    'new Firewall(stack, "firewall", { host, ports: [22, 80, 8000], loopbackPorts: [8000] });',
    "The firewall would open the port to other hosts, but only the host itself may reach the service on this port.",
  ),
  "firewall.no-effect": entry(
    'new Firewall(stack, "firewall", { host, ports: [22, 80, 443], allowed: [{ port: 443, from: ["10.0.0.0/8"] }] });',
    "Another rule lets everyone in at this port, so the ranges of the entry would keep nobody out.",
  ),
  "firewall.locks-out": entry(
    'new Firewall(stack, "firewall", { host, ports: [80, 443] });',
    "The firewall would block ssh, so the host would be reachable only on its console. Set `acceptLockOut: true` if this is intended.",
  ),
  "bans.no-effect": entry(
    `new FrontEnd(stack, "front", {
  host: { address: "192.0.2.10" },
  mode: Mode.tls(),
  proxy: { trustedProxies: ["10.0.0.5"] },
  application: Application.immich(),
  fail2ban: {},
});`,
    "fail2ban bans the addresses of connections. Behind a load balancer, all connections come from the balancer, so a ban of a client's address has no effect.",
  ),
  "bans.unreadable-log": entry(
    `new FrontEnd(stack, "front", {
  host: { address: "192.0.2.10" },
  mode: Mode.tls(),
  proxy: { logs: { clientAddress: "network" } },
  application: Application.immich(),
  fail2ban: {},
});`,
    "fail2ban and CrowdSec read access logs. The log must be a file, must have the whole address of each client, and must tell whose log-in failed.",
  ),
  "unit.fastcgi-start": entry(
    'new ApplicationSettings(stack, "settings", { host, scheme: "https", startCommand: ["/srv/sync/web.sh", "start-fastcgi"] });',
    "The proxy speaks HTTP to the web application, but the application's FastCGI variant does not.",
  ),
  "unit.no-access": entry(
    `server.addRoute("shared", { path: "/shared", action: Action.staticFiles("/tmp/shared") });
new ProxyService(stack, "service", { proxy, runtimeBundle: process.execPath });`,
    "The systemd unit of the proxy lets it write only to its log directory, hides home directories, and replaces /tmp and /var/tmp with private, empty directories.",
  ),
  "unit.bad-value": entry(
    'new SystemdUnit(stack, "unit", { host, name: "app.service", unit: { Service: { ExecStart: { command: ["bin/app"] } } } });',
    "A value does not fit into a unit file, such as a name that is no directive, a program without its absolute path, or a text with control characters.",
  ),
  "unit.missing-command": entry(
    'new SystemdUnit(stack, "unit", { host, name: "app.service", unit: { Service: { User: "app" } } });',
    "systemd refuses a service that starts nothing.",
  ),
  "unit.secret-in-environment": entry(
    'new ApplicationDaemons(stack, "daemons", { host, webApplication: { command: ["/srv/sync/web"], type: "exec", user: "sync", environment: { DB_PASSWORD: "x" } } });',
    "Every user of the host can read a unit and the environment of its service, and Terraform's state contains both.",
  ),
  "settings.bad-value": entry(
    'new ApplicationSettings(stack, "settings", { host, scheme: "https", fileServer: { host: "file server" } });',
    "Portico writes the value into the application's own settings files, where the application would read it differently.",
  ),
  "files.duplicate-path": entry(
    'new HostFile(stack, "a", { host, path: "/etc/motd", content: "a" });\nnew HostFile(stack, "b", { host, path: "/etc/motd", content: "b" });',
    "Two files with the same path would overwrite each other on every apply. Two front ends have the same files, units and ports, so a host can have only one front end.",
  ),
  "delivery.no-activation": entry(
    'const far = new Host(stack, "far", { address: "192.0.2.11", delivery: Delivery.ssh({ verifyHostKey: false }) });\nnew HostFile(stack, "motd", { host: far, path: "/etc/motd", content: "" });',
    "A delivery over ssh uploads files to a staging directory, and an activation installs them together. Without an activation, every apply would succeed, but no file would ever be installed.",
  ),
  "delivery.second-activation": entry(
    'const service = new ProxyService(stack, "service", { proxy });\nnew Activation(stack, "first", { service });\nnew Activation(stack, "second", { service });',
    "An activation stops and removes everything that its document does not name, so two activations would undo each other.",
  ),
  "delivery.other-stack": entry(
    'const far = new Host(stack, "far", { address: "192.0.2.11", delivery: Delivery.ssh({ verifyHostKey: false }) });\nnew HostFile(new TerraformStack(stack, "other"), "motd", { host: far, path: "/etc/motd", content: "" });',
    "Terraform orders only the resources of one stack, but the files of a host must come after its deployment and before its activation.",
  ),
  "delivery.bad-connection": entry(
    'Delivery.ssh({ hostKey: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA==", user: "deploy" });',
    "With these options Terraform could not log in, or could not change the host after the login.",
  ),
  "delivery.unverified-host": entry(
    "Delivery.ssh();",
    "Without the server's public key, Terraform cannot verify that the server is the host, and would send the private key of the certificate to any server at this address.",
  ),
  "delivery.clear-text-key": entry(
    'Delivery.ssh({ verifyHostKey: false, privateKey: "-----BEGIN OPENSSH PRIVATE KEY-----" });',
    "The synthesized stack would contain a literal key, and the stack is a file that is stored and shared.",
  ),
  "delivery.key-at-destroy": entry(
    'const key = new TerraformVariable(stack, "key", { sensitive: true });\nDelivery.ssh({ verifyHostKey: false, privateKey: key.stringValue });',
    "A destroy logs in again to remove the deployment, but variables are not available to it.",
  ),
  "delivery.open-script-path": entry(
    'Delivery.ssh({ verifyHostKey: false, scriptPath: "/tmp/portico.sh" });',
    "Every user of the host could replace the script that Terraform runs as root.",
  ),
  "node.bad-pin": entry(
    'NodeRuntime.pinned({ version: "latest" });',
    "The Node binary for the host must be pinned by its exact version and its hash, so that every apply delivers the same binary.",
  ),
} satisfies Record<string, ErrorEntry>;
