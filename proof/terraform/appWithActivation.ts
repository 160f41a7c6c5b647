import { App, TerraformStack } from "cdktf";
import { Application, Delivery, FrontEnd, Mode } from "../../src/index.js";

/** A local delivery that ends with an activation, below a folder: the files and the state, but no service. */
const app = new App();
const stack = new TerraformStack(app, "portico");
new FrontEnd(stack, "files", {
  host: {
    address: process.env.PORTICO_ADDRESS!,
    delivery: Delivery.local({ root: process.env.PORTICO_ROOT! }),
  },
  mode: Mode.tls(),
  application: Application.fileSync({ installDirectory: "/srv/sync" }),
  defaultPage: process.env.PORTICO_PAGE,
  activation: {},
});
app.synth();
