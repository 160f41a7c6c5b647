import { App, TerraformStack } from "cdktf";
import { Application, Delivery, FrontEnd, Mode, NodeRuntime } from "../../../src/index.js";
import type { DeployedApp } from "./app.js";

/** An application with log-ins, and what the host's fail2ban does about failed ones; as JSON in `PORTICO_TEST`. */
export interface BansApp extends DeployedApp {
  readonly withoutBans?: boolean;
}

const given = JSON.parse(process.env.PORTICO_TEST!) as BansApp;

const app = new App();
const stack = new TerraformStack(app, "portico");

new FrontEnd(stack, "app", {
  host: { address: given.address, ipv6Address: given.ipv6Address, delivery: Delivery.ssh(given.ssh) },
  mode: Mode.plain(),
  application: Application.custom({
    name: "notes",
    title: "Notes",
    parts: { web: { title: "notes", url: "http://127.0.0.1:3000" } },
    main: "web",
    routes: () => ({ web: { path: "/", action: { type: "proxy", upstream: "web" } } }),
    clients: {
      withCredentials: [],
      logIns: [{ path: "/login", method: "POST", secret: "body", failed: [401] }],
    },
  }),
  service: {
    runtimeBundle: given.runtimeBundle,
    nodeRuntime: NodeRuntime.pinned({
      platform: process.arch === "arm64" ? "linux-arm64" : "linux-x64",
      cacheDirectory: given.nodeCache,
    }),
  },
  firewall: {},
  ...(given.withoutBans === true ? {} : { fail2ban: { maxRetry: 3, ignoreIp: [] } }),
});
app.synth();
