import type { Construct } from "constructs";
import { provideFor } from "../defaultProvider.js";
import type { PrivateKey, SelfSignedCert, SelfSignedCertArguments } from "../resources.js";
import { OwnResource } from "./ownResource.js";

class Key extends OwnResource implements PrivateKey {
  get rsaBits(): number {
    return this.argument("rsaBits") as number;
  }

  set rsaBits(bits: number) {
    this.change("rsaBits", bits);
  }

  get privateKeyPem(): string {
    return this.getStringAttribute("private_key_pem");
  }
}

class Certificate extends OwnResource implements SelfSignedCert {
  get certPem(): string {
    return this.getStringAttribute("cert_pem");
  }
}

export function privateKey(scope: Construct, id: string, rsaBits: number): PrivateKey {
  provideFor(scope, "tls");
  return new Key(scope, id, "tls_private_key", { algorithm: "RSA", rsaBits });
}

export function selfSignedCert(
  scope: Construct,
  id: string,
  config: SelfSignedCertArguments,
): SelfSignedCert {
  return new Certificate(scope, id, "tls_self_signed_cert", config);
}
