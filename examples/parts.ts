import { App, TerraformStack } from "cdktf";
import { Action, Host, ProxyService, ReverseProxy, TlsMaterial } from "cdktf-portico";

/** A proxy of single parts: two names, static files with encoded copies, several servers, a rewritten path. */

const app = new App();
const stack = new TerraformStack(app, "parts");
const host = new Host(stack, "host", { address: "192.0.2.10" });
const proxy = new ReverseProxy(stack, "proxy", { host });

const material = TlsMaterial.fromFiles({ certificate: "/etc/tls/chain.pem", key: "/etc/tls/key.pem" });
const https = proxy.addListener("https", { port: 443, tls: { material } });

const api = proxy.addUpstream("api", {
  servers: [{ url: "http://10.0.0.7:8000" }, { url: "http://10.0.0.8:8000", weight: 2 }],
  balance: "leastConnections",
});
const thumbnails = proxy.addUpstream("thumbnails", { url: "http://127.0.0.1:8084" });

const site = proxy.addVirtualServer("site", {
  serverNames: ["app.example.org"],
  listeners: [https],
  default: true,
});
site.addRoute("pages", {
  path: "/",
  action: Action.staticFiles("/srv/www", { index: ["index.html"], precompressed: ["br", "gzip"] }),
});
site.addRoute("api", { path: "/api", action: Action.proxy(api), requestBodyBytesMax: 10_000_000 });
site.addRoute("thumbnails", { path: "/thumbnail", action: Action.proxy(thumbnails, { rewrite: "/" }) });

const old = proxy.addVirtualServer("old", { serverNames: ["*.old.example.org"], listeners: [https] });
old.addRoute("moved", { path: "/", action: Action.redirect({ status: 301, host: "app.example.org" }) });

new ProxyService(stack, "service", { proxy });

app.synth();
