// Written by build/providerResources.ts from the provider's schema. Change that, not this file.
import type { TerraformMetaArguments } from "cdktf";
import type { Construct } from "constructs";
import { OwnResource } from "./ownResource.js";

export interface PrivateKeyConfig extends TerraformMetaArguments {
  readonly algorithm: string;
  readonly ecdsaCurve?: string;
  readonly rsaBits?: number;
}

/** `tls_private_key` */
export class PrivateKey extends OwnResource {
  constructor(scope: Construct, id: string, config: PrivateKeyConfig) {
    super(scope, id, "tls_private_key", config);
  }

  get algorithm(): string {
    return this.getStringAttribute("algorithm");
  }

  set algorithm(value: string) {
    this.change("algorithm", value);
  }

  get ecdsaCurve(): string {
    return this.getStringAttribute("ecdsa_curve");
  }

  set ecdsaCurve(value: string) {
    this.change("ecdsaCurve", value);
  }

  get privateKeyOpenssh(): string {
    return this.getStringAttribute("private_key_openssh");
  }

  get privateKeyPem(): string {
    return this.getStringAttribute("private_key_pem");
  }

  get privateKeyPemPkcs8(): string {
    return this.getStringAttribute("private_key_pem_pkcs8");
  }

  get publicKeyFingerprintMd5(): string {
    return this.getStringAttribute("public_key_fingerprint_md5");
  }

  get publicKeyFingerprintSha256(): string {
    return this.getStringAttribute("public_key_fingerprint_sha256");
  }

  get publicKeyOpenssh(): string {
    return this.getStringAttribute("public_key_openssh");
  }

  get publicKeyPem(): string {
    return this.getStringAttribute("public_key_pem");
  }

  get rsaBits(): number {
    return this.getNumberAttribute("rsa_bits");
  }

  set rsaBits(value: number) {
    this.change("rsaBits", value);
  }
}

export interface SelfSignedCertConfig extends TerraformMetaArguments {
  readonly allowedUses: readonly string[];
  readonly dnsNames?: readonly string[];
  readonly earlyRenewalHours?: number;
  readonly ipAddresses?: readonly string[];
  readonly isCaCertificate?: boolean;
  readonly privateKeyPem: string;
  readonly setAuthorityKeyId?: boolean;
  readonly setSubjectKeyId?: boolean;
  readonly uris?: readonly string[];
  readonly validityPeriodHours: number;
  readonly subject?: readonly {
    readonly commonName?: string;
    readonly country?: string;
    readonly locality?: string;
    readonly organization?: string;
    readonly organizationalUnit?: string;
    readonly postalCode?: string;
    readonly province?: string;
    readonly serialNumber?: string;
    readonly streetAddress?: readonly string[];
  }[];
}

/** `tls_self_signed_cert` */
export class SelfSignedCert extends OwnResource {
  constructor(scope: Construct, id: string, config: SelfSignedCertConfig) {
    super(scope, id, "tls_self_signed_cert", config);
  }

  get certPem(): string {
    return this.getStringAttribute("cert_pem");
  }

  get earlyRenewalHours(): number {
    return this.getNumberAttribute("early_renewal_hours");
  }

  set earlyRenewalHours(value: number) {
    this.change("earlyRenewalHours", value);
  }

  get keyAlgorithm(): string {
    return this.getStringAttribute("key_algorithm");
  }

  get privateKeyPem(): string {
    return this.getStringAttribute("private_key_pem");
  }

  set privateKeyPem(value: string) {
    this.change("privateKeyPem", value);
  }

  get validityEndTime(): string {
    return this.getStringAttribute("validity_end_time");
  }

  get validityPeriodHours(): number {
    return this.getNumberAttribute("validity_period_hours");
  }

  set validityPeriodHours(value: number) {
    this.change("validityPeriodHours", value);
  }

  get validityStartTime(): string {
    return this.getStringAttribute("validity_start_time");
  }
}
