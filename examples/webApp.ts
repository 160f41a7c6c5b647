import { App, TerraformStack } from "cdktf";
import { Application, Delivery, FrontEnd, Mode, NodeRuntime, TlsMaterial } from "cdktf-portico";

/** One ordinary application behind TLS, on a Unix socket that its group may write to. */

const DOWN = `<!doctype html>
<title>{{status}}</title>
<meta http-equiv="refresh" content="10">
<h1>Back in a moment</h1>
<p>{{serverName}}, {{time}}. If this lasts, tell us {{requestId}}.</p>
`;

const app = new App();
const stack = new TerraformStack(app, "web");

new FrontEnd(stack, "app", {
  host: {
    address: "192.0.2.10",
    publicName: "app.example.org",
    delivery: Delivery.ssh({ hostKey: process.env.HOST_KEY, privateKeyFile: "~/.ssh/id_ed25519" }),
  },
  mode: Mode.tls({ material: TlsMaterial.acme({ email: "admin@app.example.org", agreeToTerms: true }) }),
  application: Application.server("unix:/run/app/web.sock"),
  // Browsers see this while the application is away; programs get the proxy's own short page.
  errorPages: [{ statuses: [502, 503, 504], html: DOWN }],
  service: { groups: ["app"], nodeRuntime: NodeRuntime.pinned() },
});

app.synth();
