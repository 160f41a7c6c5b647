import { App, TerraformStack, TerraformVariable } from "cdktf";
import { ApplicationDaemons, Delivery, Host } from "../../src/index.js";

/** A daemon whose command ends in a word that only Terraform knows. */
const app = new App();
const stack = new TerraformStack(app, "portico");
const word = new TerraformVariable(stack, "word", { type: "string" }).stringValue;
new ApplicationDaemons(stack, "daemons", {
  host: new Host(stack, "host", {
    address: process.env.PORTICO_ADDRESS!,
    delivery: Delivery.local({ root: process.env.PORTICO_ROOT! }),
  }),
  webApplication: {
    command: ["/bin/sh", "-c", `/srv/web.sh "\${HOME}" ${word}`],
    type: "forking",
    user: "sync",
  },
});
app.synth();
