import { App, TerraformStack } from "cdktf";
import { Action, Application, FrontEnd, Mode } from "../../src/constructs/index.js";

/**
 * Synthesizes one stack in a fresh process. Arguments: hosts, routes added to the first of them, folder for the result. Prints the CPU
 * milliseconds from the first construct to the files, without loading the modules.
 */
const [hosts, routes] = process.argv.slice(2, 4).map(Number) as [number, number];
const outdir = process.argv[4]!;

const before = process.cpuUsage();
const app = new App({ outdir });
const stack = new TerraformStack(app, "stack");
for (let i = 0; i < hosts; i++) {
  const frontEnd = new FrontEnd(stack, `host-${i}`, {
    host: { address: `192.0.2.${i + 1}` },
    mode: Mode.tls(),
    application: Application.fileSync({ installDirectory: "/srv/sync" }),
  });
  for (let j = 0; i === 0 && j < routes; j++) {
    frontEnd.site.virtualServer.addRoute(`extra-${j}`, {
      path: `/extra-${j}`,
      action: Action.proxy(frontEnd.site.upstreams.web),
    });
  }
}
app.synth();
const { user, system } = process.cpuUsage(before);
console.log(JSON.stringify({ ms: (user + system) / 1000 }));
