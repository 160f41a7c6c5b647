import { App, TerraformOutput, TerraformStack } from "cdktf";
import { Action, Application, Delivery, FrontEnd, Mode } from "../../src/index.js";

/** `main.ts` with one more route: what a change of one route does to a plan. */
const app = new App();
const stack = new TerraformStack(app, "portico");
const files = new FrontEnd(stack, "files", {
  host: {
    address: process.env.PORTICO_ADDRESS!,
    delivery: Delivery.local({ root: process.env.PORTICO_ROOT! }),
  },
  mode: Mode.tls(),
  application: Application.fileSync({ installDirectory: "/srv/sync" }),
});
files.site.virtualServer.addRoute("health", {
  path: "/health",
  match: "exact",
  action: Action.respond(200, { body: "ok\n" }),
});
new TerraformOutput(stack, "url", { value: files.site.url });
app.synth();
