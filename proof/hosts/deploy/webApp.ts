import { App, TerraformStack } from "cdktf";
import {
  Action,
  Activation,
  Application,
  Delivery,
  FrontEnd,
  Host,
  Mode,
  NodeRuntime,
  ProxyService,
  ReverseProxy,
} from "../../../src/index.js";
import type { DeployedApp } from "./app.js";

/**
 * Ordinary applications: a `FrontEnd`, or with `health` the same of a plain `ReverseProxy`, whose upstream listens on a Unix
 * socket that only a group may write to.
 */

const given = JSON.parse(process.env.PORTICO_TEST!) as DeployedApp;

const app = new App();
const stack = new TerraformStack(app, "portico");

const host = new Host(stack, "Host", { address: given.address, delivery: Delivery.ssh(given.ssh) });
const usual = given.health === true ? "unix:/run/sync-socket/web.sock" : "http://127.0.0.1:8082";
const upstream = given.brokenUpstream === true ? "http://127.0.0.1:8999" : usual;
const probe = { timeoutSeconds: given.probeSeconds ?? 30 };
const runtime = {
  runtimeBundle: given.runtimeBundle,
  nodeRuntime: NodeRuntime.pinned({
    platform: process.arch === "arm64" ? "linux-arm64" : "linux-x64",
    cacheDirectory: given.nodeCache,
  }),
};

if (given.health === true) {
  const proxy = new ReverseProxy(stack, "Proxy", { host });
  const http = proxy.addListener("http", { address: "0.0.0.0", port: 80 });
  const server = proxy.addVirtualServer("site", { serverNames: ["_"], listeners: [http], default: true });
  const target = proxy.addUpstream("app", { url: upstream });
  server.addRoute("app", { path: "/", action: Action.proxy(target) });
  const service = new ProxyService(stack, "Service", { ...runtime, proxy, groups: ["www-data"] });
  new Activation(stack, "Activation", { service, describe: () => ({ probe }) });
} else {
  new FrontEnd(stack, "app", {
    host,
    mode: Mode.tls(),
    application: Application.server(upstream),
    service: runtime,
    activation: { probe },
  });
}
app.synth();
