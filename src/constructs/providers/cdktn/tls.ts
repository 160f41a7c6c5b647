import type { Construct } from "constructs";
import { provideFor } from "../defaultProvider.js";
import type * as resources from "../resources.js";
import { PrivateKey, SelfSignedCert } from "./tlsResources.js";

export function privateKey(scope: Construct, id: string, rsaBits: number): resources.PrivateKeyResource {
  provideFor(scope, "tls");
  return new PrivateKey(scope, id, { algorithm: "RSA", rsaBits });
}

export function selfSignedCert(
  scope: Construct,
  id: string,
  config: resources.SelfSignedCertArguments,
): resources.SelfSignedCertResource {
  return new SelfSignedCert(scope, id, config);
}
