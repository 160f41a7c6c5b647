import { PrivateKey } from "@cdktf/provider-tls/lib/private-key";
import { SelfSignedCert } from "@cdktf/provider-tls/lib/self-signed-cert";
import { Construct } from "constructs";
import { problem } from "../model/index.js";
import { dhParametersPem } from "../render/index.js";
import { refuse } from "./checks.js";
import type { Host } from "./host.js";
import { HostFile } from "./hostFile.js";
import { isKnown } from "./tokens.js";

/**
 * Private key, certificate and Diffie-Hellman parameters (spec 2.2). A closed choice: take one of the static methods.
 * One material serves any number of listeners of a proxy, and makes its resources once.
 */
export abstract class TlsMaterial {
  /**
   * A key and a certificate for the host's names and addresses, both made by Terraform. Browsers do not trust it;
   * users add an exception (spec 5).
   *
   * The private key lies in Terraform's state in plain text: protect the state as you would the key, or use
   * `fromFiles`, which Terraform never reads.
   */
  static selfSigned(options: SelfSignedOptions = {}): TlsMaterial {
    return new SelfSignedMaterial(options);
  }

  /** Files that are on the host already. Neither key nor certificate enters synthesis or state. */
  static fromFiles(files: TlsFilePaths): TlsMaterial {
    return new ExistingMaterial(files);
  }

  /** @internal Makes what has to be made. */
  abstract bind(scope: Construct, context: TlsContext): TlsFiles;
}

/** Where the parts are on the host. */
export interface TlsFiles {
  readonly certificate: string;
  readonly key: string;
  readonly dhparam?: string;
  /** The resources behind a self-signed material; undefined for existing files. */
  readonly selfSigned?: SelfSignedTls;
}

export interface TlsFilePaths {
  /** PEM file: the server's certificate, then its chain. Absolute path on the host. */
  readonly certificate: string;
  /** PEM file: the private key, without passphrase. Absolute path on the host. */
  readonly key: string;
  /**
   * PEM file: Diffie-Hellman parameters of at least 2048 bits. `false` for none, which turns DHE suites off.
   * @default - the ffdhe2048 group of RFC 7919, written beside the proxy's other TLS files
   */
  readonly dhparam?: string | false;
}

export interface SelfSignedOptions {
  /**
   * Further domain names the certificate is good for.
   * @default - none
   */
  readonly dnsNames?: readonly string[];
  /**
   * Days the certificate is valid from its making.
   * @default 3650 (spec 2.2)
   */
  readonly validityDays?: number;
  /**
   * Days before the end from which on Terraform makes a new certificate; 0 waits for the end.
   * @default 30
   */
  readonly renewalDays?: number;
}

/** @internal What a material depends on. */
export interface TlsContext {
  readonly host: Host;
  readonly directory: string;
}

/** Key, certificate and parameters that Terraform makes, and their files. */
export class SelfSignedTls extends Construct {
  readonly privateKey: PrivateKey;
  readonly certificate: SelfSignedCert;
  readonly keyFile: HostFile;
  readonly certificateFile: HostFile;
  readonly dhParametersFile: HostFile;

  /** @internal Made through `TlsMaterial.selfSigned`. */
  constructor(scope: Construct, id: string, { host, directory }: TlsContext, options: SelfSignedOptions) {
    super(scope, id);
    this.privateKey = new PrivateKey(this, "PrivateKey", { algorithm: "RSA", rsaBits: 2048 });
    this.certificate = new SelfSignedCert(this, "Certificate", {
      privateKeyPem: this.privateKey.privateKeyPem,
      ...subject(host, options),
      allowedUses: ["digital_signature", "key_encipherment", "server_auth"],
      setSubjectKeyId: true,
      validityPeriodHours: (options.validityDays ?? 3650) * 24,
      earlyRenewalHours: (options.renewalDays ?? 30) * 24,
    });
    this.keyFile = new HostFile(this, "KeyFile", {
      host,
      path: `${directory}/privkey.pem`,
      content: this.privateKey.privateKeyPem,
      mode: "0600",
      role: "tls",
      sensitive: true,
    });
    this.certificateFile = new HostFile(this, "CertificateFile", {
      host,
      path: `${directory}/cacert.pem`,
      content: this.certificate.certPem,
      role: "tls",
    });
    this.dhParametersFile = dhParametersFile(scope, { host, directory });
  }
}

/** Subject and alternative names: clients compare only the latter, and addresses need a kind of their own (RFC 6125). */
function subject(host: Host, options: SelfSignedOptions) {
  const names = [...(host.publicName === undefined ? [] : [host.publicName]), ...(options.dnsNames ?? [])];
  const [main] = host.serverNames;
  // A common name has at most 64 characters (RFC 5280, ub-common-name).
  const commonName = isKnown(main) && main.length > 64 ? host.address : main;
  return {
    subject: [{ commonName }],
    ...(names.length === 0 ? {} : { dnsNames: names }),
    ipAddresses: host.ipv6Address === undefined ? [host.address] : [host.address, host.ipv6Address],
  };
}

/** The parameters are no secret and the same for everybody, so the materials of a proxy share them. */
function dhParametersFile(scope: Construct, { host, directory }: TlsContext): HostFile {
  const id = "DhParameters";
  const existing = scope.node.tryFindChild(id);
  if (existing !== undefined) return existing as HostFile;
  return new HostFile(scope, id, {
    host,
    path: `${directory}/dhparam2048.pem`,
    content: dhParametersPem(),
    role: "tls",
  });
}

class SelfSignedMaterial extends TlsMaterial {
  constructor(private readonly options: SelfSignedOptions) {
    super();
  }

  override bind(scope: Construct, context: TlsContext): TlsFiles {
    if (scope.node.tryFindChild("Tls") !== undefined) {
      const fix = "Let listeners share one self-signed material; its certificate takes further `dnsNames`.";
      const message = "already has a self-signed material, with files of the same names";
      refuse([problem("config.duplicate-name", scope.node.path, message, { fix })]);
    }
    const tls = new SelfSignedTls(scope, "Tls", context, this.options);
    return {
      certificate: tls.certificateFile.path,
      key: tls.keyFile.path,
      dhparam: tls.dhParametersFile.path,
      selfSigned: tls,
    };
  }
}

class ExistingMaterial extends TlsMaterial {
  constructor(private readonly files: TlsFilePaths) {
    super();
  }

  override bind(scope: Construct, context: TlsContext): TlsFiles {
    const { certificate, key, dhparam } = this.files;
    if (dhparam === false) return { certificate, key };
    if (dhparam !== undefined) return { certificate, key, dhparam };
    return { certificate, key, dhparam: dhParametersFile(scope, context).path };
  }
}
