import type { TerraformStack } from "cdktf";
import { Action, Application, FrontEnd, Mode } from "../../../src/index.js";

/** An application of one's own on two servers, with an API beside it. */
export function ownApplication(stack: TerraformStack): FrontEnd {
  const front = new FrontEnd(stack, "app", {
    host: { address: "192.0.2.10", publicName: "app.example.org" },
    mode: Mode.tls(),
    application: Application.server({
      servers: [{ url: "http://10.0.0.7:3000" }, { url: "http://10.0.0.8:3000" }],
      health: { path: "/health" },
    }),
  });
  front.site.addRoute("api", {
    path: "/api",
    action: Action.proxy("http://127.0.0.1:4000"),
    requestBodyBytesMax: 10_000_000,
  });
  return front;
}
