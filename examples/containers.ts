import { App, TerraformStack } from "cdktf";
import { Application, ContainerFrontEnd, Mode } from "cdktf-portico";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Files for `docker compose`, beside the Compose file of a vendor: nothing goes through Terraform. */

const app = new App();
const stack = new TerraformStack(app, "containers");

const { proxy } = new ContainerFrontEnd(stack, "photos", {
  mode: Mode.tls(),
  serverNames: ["photos.example.org"],
  application: Application.immich(),
  upstreams: { web: { url: "http://immich-server:2283" } },
  proxy: { healthListener: { address: "127.0.0.1", port: 9180 } },
});

for (const [path, text] of proxy.composeFiles({
  image: "registry.example/portico:0.1.0",
  networks: ["immich"],
})) {
  const file = join("compose", path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
