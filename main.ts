import { App, TerraformOutput, TerraformStack } from "cdktf";
import { Application, Delivery, FrontEnd, Mode } from "./src/index.js";

/*
 * The front end of a file-sync application on one host. Without settings everything lands in ./out/host; with
 * PORTICO_ROOT=/ it lands on the machine that runs Terraform.
 */
const {
  PORTICO_ADDRESS: address = "192.0.2.10",
  PORTICO_MODE: mode = "tls",
  PORTICO_ROOT: root = "./out/host",
} = process.env;

const app = new App();
const stack = new TerraformStack(app, "portico");

const files = new FrontEnd(stack, "files", {
  host: { address, delivery: Delivery.local({ root }) },
  mode: mode === "plain" ? Mode.plain() : Mode.tls(),
  application: Application.fileSync({ installDirectory: "/srv/sync" }),
});

new TerraformOutput(stack, "url", { value: files.site.url });
app.synth();
