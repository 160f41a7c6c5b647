// Loading it late is the purpose.
/* oxlint-disable typescript/no-require-imports */
import type * as keys from "@cdktf/provider-tls/lib/private-key";
import type * as certificates from "@cdktf/provider-tls/lib/self-signed-cert";
import type { Construct } from "constructs";
import { provideFor } from "./defaultProvider.js";
import { loaded } from "./loaded.js";
import type { PrivateKeyResource, SelfSignedCertResource, SelfSignedCertArguments } from "./resources.js";

const PACKAGE = "@cdktf/provider-tls";

/** The tls provider's package is loaded when a stack has a self-signed material. */
export function privateKey(scope: Construct, id: string, rsaBits: number): PrivateKeyResource {
  provideFor(scope, "tls");
  const Resource = loaded(
    scope,
    PACKAGE,
    () => (require("@cdktf/provider-tls/lib/private-key") as typeof keys).PrivateKey,
  );
  return new Resource(scope, id, { algorithm: "RSA", rsaBits });
}

export function selfSignedCert(
  scope: Construct,
  id: string,
  config: SelfSignedCertArguments,
): SelfSignedCertResource {
  const Resource = loaded(
    scope,
    PACKAGE,
    () => (require("@cdktf/provider-tls/lib/self-signed-cert") as typeof certificates).SelfSignedCert,
  );
  return new Resource(scope, id, config);
}
