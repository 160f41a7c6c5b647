// Loading it late is the purpose; synthesis is synchronous, so `import()` cannot.
/* oxlint-disable typescript/no-require-imports */
import type * as keys from "@cdktf/provider-tls/lib/private-key";
import type * as certificates from "@cdktf/provider-tls/lib/self-signed-cert";

/** The tls provider's resources, loaded when they are first used: only self-signed materials have any. */
export const tlsProvider = {
  get PrivateKey() {
    return (require("@cdktf/provider-tls/lib/private-key") as typeof keys).PrivateKey;
  },
  get SelfSignedCert() {
    return (require("@cdktf/provider-tls/lib/self-signed-cert") as typeof certificates).SelfSignedCert;
  },
};
