import { App, TerraformStack } from "cdktf";
import {
  Application,
  Delivery,
  FILE_SYNC_RESPONSE_HEADERS,
  FrontEnd,
  Mode,
  NodeRuntime,
  TlsMaterial,
} from "cdktf-portico";

/** A file-sync service on one host, over ssh: a certificate that browsers trust, and a packet filter. */

const app = new App();
const stack = new TerraformStack(app, "files");

const files = new FrontEnd(stack, "files", {
  host: {
    address: "192.0.2.10",
    publicName: "files.example.org",
    delivery: Delivery.ssh({ hostKey: process.env.HOST_KEY, privateKeyFile: "~/.ssh/id_ed25519" }),
  },
  mode: Mode.tls({ material: TlsMaterial.acme({ email: "admin@files.example.org", agreeToTerms: true }) }),
  application: Application.fileSync({ installDirectory: "/srv/sync" }),
  rootRedirect: true,
  responseHeaders: FILE_SYNC_RESPONSE_HEADERS,
  service: { nodeRuntime: NodeRuntime.pinned() },
  firewall: {},
  outputs: true,
});

// Every part is a member: a limit of one route, without the others.
files.site.routes.fileServer.configure({ sendTimeoutMs: 120_000 });

app.synth();
