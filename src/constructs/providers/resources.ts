import type { TerraformResource } from "cdktf";

/** The resources of providers that a front end makes, with the attributes that it uses. */

/** A file on the machine that runs Terraform: `local_file` or `local_sensitive_file`. */
export interface LocalFile extends TerraformResource {
  /** SHA-256 of the content, in hex. */
  readonly contentSha256: string;
}

/** Arguments of a file; one of `content` and `source`. */
export interface LocalFileArguments {
  readonly filename: string;
  readonly content?: string;
  readonly source?: string;
  readonly filePermission: string;
  readonly directoryPermission: string;
  /** Whether Terraform hides the content. */
  readonly sensitive: boolean;
}

/** An RSA key in state: `tls_private_key`. */
export interface PrivateKeyResource extends TerraformResource {
  /** Size of the key in bits. */
  rsaBits: number;
  /** The key (PKCS #1), in PEM. */
  readonly privateKeyPem: string;
}

/** A self-signed certificate: `tls_self_signed_cert`. */
export interface SelfSignedCertResource extends TerraformResource {
  /** The certificate, in PEM. */
  readonly certPem: string;
}

/** Arguments of a certificate. */
export interface SelfSignedCertArguments {
  readonly privateKeyPem: string;
  readonly subject: { readonly commonName?: string }[];
  readonly dnsNames: string[];
  readonly ipAddresses: string[];
  readonly allowedUses: string[];
  readonly setSubjectKeyId: boolean;
  readonly validityPeriodHours: number;
  readonly earlyRenewalHours: number;
}
