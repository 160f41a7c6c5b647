import { App, TerraformOutput, TerraformStack } from "cdktf";
import { Delivery, FileSyncFrontEnd, Mode } from "./src/index.js";

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

const files = new FileSyncFrontEnd(stack, "files", {
  host: { address, delivery: Delivery.local({ root }) },
  mode: mode === "plain" ? Mode.plain() : Mode.tls(),
  installDirectory: "/srv/sync",
});

new TerraformOutput(stack, "url", { value: files.url });
app.synth();
