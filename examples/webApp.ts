import { App, TerraformStack } from "cdktf";
import { Delivery, Mode, NodeRuntime, TlsMaterial, WebFrontEnd } from "cdktf-portico";

/** One ordinary application behind TLS, on a Unix socket that its group may write to. */

const app = new App();
const stack = new TerraformStack(app, "web");

new WebFrontEnd(stack, "app", {
  host: {
    address: "192.0.2.10",
    publicName: "app.example.org",
    delivery: Delivery.ssh({ hostKey: process.env.HOST_KEY, privateKeyFile: "~/.ssh/id_ed25519" }),
  },
  mode: Mode.tls({ material: TlsMaterial.acme({ email: "admin@app.example.org", agreeToTerms: true }) }),
  upstream: "unix:/run/app/web.sock",
  service: { groups: ["app"], nodeRuntime: NodeRuntime.pinned() },
});

app.synth();
