import { App, TerraformStack } from "cdktf";
import { Application, Delivery, FrontEnd, Mode, NodeRuntime, TlsMaterial } from "cdktf-portico";

/** Three applications on one host: each has its own names, and its own certificate from one account. */

const app = new App();
const stack = new TerraformStack(app, "home");

const front = new FrontEnd(stack, "home", {
  host: {
    address: "192.0.2.10",
    publicName: "cloud.example.org",
    delivery: Delivery.ssh({ hostKey: process.env.HOST_KEY, privateKeyFile: "~/.ssh/id_ed25519" }),
  },
  mode: Mode.tls({ material: TlsMaterial.acme({ email: "admin@cloud.example.org", agreeToTerms: true }) }),
  application: Application.nextcloud(),
  service: { nodeRuntime: NodeRuntime.pinned() },
  firewall: {},
});

front.addSite("vault", {
  serverNames: ["vault.example.org"],
  application: Application.vaultwarden({ directory: "/srv/vaultwarden" }),
  upstreams: { web: { url: "http://127.0.0.1:8222" } },
});

const wiki = front.addSite("wiki", {
  serverNames: ["wiki.example.org"],
  application: Application.server("http://127.0.0.1:3000"),
});
wiki.routes.web.configure({ requestBodyBytesMax: 20_000_000 });

app.synth();
