import { implementing, instance } from "./propTable.js";

/** The classes of this package as kinds of props, with the expected value in words and how to make one. */
export const ACTION = instance(
  "Action",
  "an Action",
  "Use `Action.proxy(upstream)`, `Action.staticFiles(directory)`, `Action.redirect()` or `Action.respond(status)`.",
);
export const APPLICATION = instance(
  "Application",
  "an Application",
  'Use `Application.seafile({ version: "12" })`, `Application.nextcloud()`, `Application.custom({ … })`, or another method of `Application`.',
);
export const CONTAINER_PROXY = implementing(
  ["config", "files", "listeners", "virtualServers", "upstreams"],
  instance(
    "ContainerProxy",
    "a ContainerProxy",
    "Create one: `new ContainerProxy(stack, id)`, or `new ContainerFrontEnd(stack, id, …).proxy`.",
  ),
);
export const DELIVERY = instance("Delivery", "a Delivery", "Use `Delivery.local(…)` or `Delivery.ssh(…)`.");
export const HOST = implementing(
  ["address", "clientAddress", "delivery", "props"],
  instance("Host", "a Host", "Create one: `new Host(stack, id, { address })`."),
);
export const LISTENER = implementing(
  ["name", "address", "port", "protocol"],
  instance("Listener", "a Listener", "Create one: `proxy.addListener(id, { port })`."),
);
export const MODE = instance("Mode", "a Mode", "Use `Mode.tls()` or `Mode.plain()`.");
export const NODE_RUNTIME = instance(
  "NodeRuntime",
  "a NodeRuntime",
  "Use `NodeRuntime.pinned()` or `NodeRuntime.fromFile(path)`.",
);
export const PROXY_SERVICE = implementing(
  ["host", "proxy", "config", "nodePath", "runtime", "serviceUnit", "socketUnit"],
  instance("ProxyService", "a ProxyService", "Create one: `new ProxyService(stack, id, { proxy })`."),
);
export const REVERSE_PROXY = implementing(
  ["host", "paths", "configFile", "config", "listeners", "virtualServers", "upstreams"],
  instance("ReverseProxy", "a ReverseProxy", "Create one: `new ReverseProxy(stack, id, { host })`."),
);
export const TLS_MATERIAL = instance(
  "TlsMaterial",
  "a TlsMaterial",
  "Use `TlsMaterial.selfSigned(…)`, `TlsMaterial.acme({ email, agreeToTerms })` or `TlsMaterial.fromFiles({ certificate, key })`; in containers, `TlsMaterial.fromSecret()`.",
);
export const TLS_POLICY = instance(
  "TlsPolicy",
  "a TlsPolicy",
  "Use `TlsPolicy.fileSync()`, `TlsPolicy.mozillaIntermediate()`, `TlsPolicy.mozillaModern()` or `TlsPolicy.custom(…)`.",
);
export const UPSTREAM = implementing(
  ["name", "url", "urls", "render"],
  instance("Upstream", "an Upstream", "Create one: `proxy.addUpstream(id, { url })`."),
);
export const VIRTUAL_SERVER = instance(
  "VirtualServer",
  "a VirtualServer",
  "Create one: `proxy.addVirtualServer(id, { serverNames, listeners })`.",
);
