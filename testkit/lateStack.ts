import { type App, DataResource, Fn, TerraformOutput, TerraformStack, TerraformVariable, Token } from "cdktf";
import { dnsRecordsOutput } from "../src/constructs/host/host.js";
import {
  Action,
  Activation,
  ApplicationDaemons,
  ApplicationSettings,
  Delivery,
  Firewall,
  Host,
  HostFile,
  ProxyService,
  ReverseProxy,
  StaticNetwork,
  TlsMaterial,
} from "../src/index.js";
import { LATE_VALUES, typeOf } from "./lateValues.js";

/** A proxy whose every value comes from a variable, one also by way of a resource. */
export function lateStack(app: App, root: string, runtimeBundle?: string): TerraformStack {
  const stack = new TerraformStack(app, "portico");

  const variables = new Map(
    LATE_VALUES.map(({ name, good }) => [
      name,
      new TerraformVariable(stack, name, { type: typeOf(good), default: good }),
    ]),
  );
  const text = (name: string): string => variables.get(name)!.stringValue;
  const number = (name: string): number => variables.get(name)!.numberValue;
  const list = (name: string): string[] => Token.asList(variables.get(name)!.value);

  const host = new Host(stack, "host", {
    address: text("address"),
    ipv6Address: text("ipv6"),
    publicName: text("publicName"),
    netmask: "255.255.255.0",
    gateway: text("gateway"),
    dnsDomain: text("dnsDomain"),
    nameservers: ["9.9.9.10", text("nameserver")],
    sshPort: number("sshPort"),
    delivery: Delivery.local({ root }),
  });
  new StaticNetwork(stack, "network", {
    host,
    interface: { name: text("interface") },
    ipv6PrefixLength: number("prefixLength"),
    ipv6Gateway: text("gateway6"),
    resolverFile: true,
  });
  new StaticNetwork(stack, "network2", {
    host,
    interface: { macAddress: text("mac") },
    name: "06-second.network",
  });
  new TerraformOutput(stack, "records", { value: dnsRecordsOutput(host) });
  const proxy = new ReverseProxy(stack, "proxy", {
    host,
    workers: number("workers"),
    trustedProxies: list("trusted"),
    paths: { logDirectory: text("logDirectory") },
  });
  const listener = proxy.addListener("http", {
    port: number("listenerPort"),
    address: text("listenerAddress"),
  });
  const https = proxy.addListener("https", {
    port: 8443,
    address: text("listenerAddress6"),
    tls: {
      material: TlsMaterial.fromFiles({
        certificate: text("certificate"),
        key: "/etc/ssl/site.key",
        dhparam: false,
      }),
    },
  });
  const signed = proxy.addListener("signed", {
    port: 9443,
    tls: { material: TlsMaterial.selfSigned({ dnsNames: ["known.example.org", text("dnsName")] }) },
  });
  const server = proxy.addVirtualServer("site", {
    serverNames: [text("publicName"), text("ipv6ServerName")],
    listeners: [listener, https, signed],
    default: true,
  });
  const applied = new DataResource(stack, "resource", { input: { url: text("applied") } });
  const web = proxy.addUpstream("web", { url: `http://${text("urlHost")}:${text("urlPort")}` });
  const other = proxy.addUpstream("other", {
    url: Token.asString(Fn.lookup(applied.output, "url", "")),
    readTimeoutMs: number("timeout"),
  });
  server.addRoute("web", {
    path: text("routePath"),
    action: Action.proxy(web, { strip: text("strip") as "raw" }),
  });
  server.addRoute("other", { path: "/other", action: Action.proxy(other) });
  server.addRoute("files", { path: "/files", action: Action.staticFiles(`${text("directory")}/media`) });
  server.addRoute("gone", {
    path: "/gone",
    action: Action.respond(number("status"), { contentType: text("line") }),
    responseHeaders: { set: { "X-Site": text("fieldValue") }, remove: [text("fieldName")] },
  });
  const service = new ProxyService(stack, "service", {
    proxy,
    nodePath: text("nodePath"),
    runtimeBundle,
    stopTimeoutSeconds: number("stopTimeout"),
    openFilesMax: number("openFiles"),
    memoryMax: text("memory"),
    logDaysKept: number("logDays"),
  });
  new ApplicationSettings(stack, "settings", {
    host,
    scheme: "https",
    serverNames: [text("settingsName"), text("settingsName6")],
    publicPort: number("publicPort"),
    pathPrefix: text("prefix"),
    fileServer: { host: text("fileServerHost"), port: number("fileServerPort") },
    startCommand: ["/srv/sync/web.sh", "start", text("startArgument"), text("startWord")],
  });
  new ApplicationDaemons(stack, "daemons", {
    host,
    webdav: {
      command: ["/srv/sync/webdav", text("argument")],
      type: "exec",
      user: text("user"),
      workingDirectory: text("directory2"),
      environment: { LEVEL: text("variable") },
      startTimeoutSeconds: number("startTimeout"),
    },
  });
  new Firewall(stack, "firewall", {
    host,
    ports: [number("firewallPort")],
    allowed: [
      { port: number("allowedPort"), from: ["192.0.2.0/24", text("range"), text("range6")] },
      { port: number("closedPort") },
    ],
  });
  new HostFile(stack, "note", { host, path: `/etc/portico/note-${text("path")}`, content: "note" });
  new Activation(stack, "activation", { service });
  return stack;
}
