import type { TerraformStack } from "cdktf";
import {
  Application,
  FILE_SYNC_RESPONSE_HEADERS,
  FrontEnd,
  Mode,
  TlsMaterial,
  type AcmeOptions,
} from "../../../src/index.js";

/** A small office: a suite with its office server and push, a wiki below a path, a website, and an old domain. */
export function office(stack: TerraformStack, dns?: AcmeOptions["dns"]): FrontEnd {
  const material = TlsMaterial.acme({ email: "admin@office.net", agreeToTerms: true, dns });
  const front = new FrontEnd(stack, "office", {
    host: { address: "192.0.2.10" },
    mode: Mode.tls({ material }),
    proxy: { metricsListener: { address: "127.0.0.1", port: 9181 } },
  });
  const cloud = front.addSite("cloud", {
    serverNames: ["cloud.office.net", "cloud.office-old.net"],
    application: Application.nextcloud({ push: true, office: "collabora" }),
    responseHeaders: FILE_SYNC_RESPONSE_HEADERS,
  });
  cloud.addApplication("wiki", { path: "/wiki", application: Application.server("unix:/run/wiki/web.sock") });
  cloud.routes.web.configure({ requestBodyBytesMax: 50_000_000_000 });
  front.addSite("www", {
    serverNames: ["office.net"],
    application: Application.staticFiles("/srv/www", { index: ["index.html"], precompressed: ["br"] }),
  });
  front.addSite("old", {
    serverNames: ["office-old.net", "*.office-old.net"],
    application: Application.redirect({ host: "office.net" }),
  });
  return front;
}
