import type { TerraformStack } from "cdktf";
import { Application, FrontEnd, Mode } from "../../../src/index.js";

/** The service, nothing else, and no domain. */
export function serviceAlone(stack: TerraformStack, mode = Mode.tls()): FrontEnd {
  return new FrontEnd(stack, "files", {
    host: { address: "192.0.2.10" },
    mode,
    application: Application.fileSync({ installDirectory: "/srv/sync" }),
  });
}
