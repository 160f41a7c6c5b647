import type { Construct } from "constructs";
import { provideFor } from "../defaultProvider.js";
import type * as resources from "../resources.js";
import { CdktnPrivateKey, CdktnSelfSignedCert } from "./tlsResources.js";

export function privateKey(scope: Construct, id: string, rsaBits: number): resources.PrivateKey {
  provideFor(scope, "tls");
  return new CdktnPrivateKey(scope, id, { algorithm: "RSA", rsaBits });
}

export function selfSignedCert(
  scope: Construct,
  id: string,
  config: resources.SelfSignedCertArguments,
): resources.SelfSignedCert {
  return new CdktnSelfSignedCert(scope, id, config);
}
