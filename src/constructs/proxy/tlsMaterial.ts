import { Lazy } from "cdktf";
import { Construct } from "constructs";
import { isIP } from "node:net";
import type { tls } from "../../model/config/tls.js";
import type { InputOf } from "../../model/schema/inferred.js";
import { freeId } from "../props/constructIds.js";
import {
  type AcmeCertificateInput,
  dnsFiles,
  type Problem,
  problem,
  ProblemError,
} from "../../model/index.js";
import { CATCH_ALL } from "../../model/net/serverName.js";
import { isFilePath } from "../../model/text/textRule.js";
import { CONTAINER_PATHS, dhParametersPem } from "../../render/index.js";
import { type AcmeOptions, refuseAcme, warnOfExampleAddress } from "./acme.js";
import { hostPathProblems, refuse } from "../props/checks.js";
import type { IHost } from "../host/host.js";
import { HostFile } from "../host/hostFile.js";
import { lateText } from "../props/lateChecks.js";
import { TLS_MATERIAL } from "../props/instances.js";
import {
  choice,
  either,
  type PropTable,
  refuseNew,
  refuseOptions,
  required,
  text,
} from "../props/propTable.js";
import { hasTokens, isKnown, lateAddress } from "../props/tokens.js";
import type { PrivateKeyResource, SelfSignedCertResource } from "../providers/resources.js";
import { privateKey, selfSignedCert } from "../providers/tls.js";
import {
  DEFAULT_VALIDITY_DAYS,
  defaultRenewalDays,
  DNS_NAME,
  SELF_SIGNED_OPTIONS,
  type SelfSignedOptions,
  selfSignedProblems,
} from "./selfSignedOptions.js";

/**
 * Private key, certificate and Diffie-Hellman parameters. Each static method creates one kind of material. Any number
 * of listeners of a proxy can share a material; its resources are created once.
 */
export abstract class TlsMaterial {
  /** @internal Whether only clients with an exception for it trust the certificate. */
  readonly selfSigned: boolean = false;
  // This is for the compiler of a user: the other members are for the package alone.
  declare private readonly kind: "TlsMaterial";

  /** @internal Made through its static methods. */
  constructor() {
    refuseNew("TlsMaterial", TLS_MATERIAL, new.target === TlsMaterial);
  }

  /**
   * A key and a certificate for the host's names and addresses, both created by Terraform. Browsers do not trust the
   * certificate; users add an exception.
   *
   * Terraform's state contains the private key in plain text: protect the state like the key, or use `fromFiles`,
   * whose files Terraform never reads.
   */
  static selfSigned(options: SelfSignedOptions = {}): TlsMaterial {
    refuseOptions("TlsMaterial.selfSigned", options, SELF_SIGNED_OPTIONS, selfSignedProblems);
    return new SelfSignedMaterial(options);
  }

  /**
   * Existing files on the host, with an ECDSA key, as from certbot, or an RSA key. The listener's default policy is
   * then `TlsPolicy.mozillaIntermediate()`. Neither key nor certificate enters synthesis or state.
   */
  static fromFiles(files: TlsFilePaths): TlsMaterial {
    refuseOptions("TlsMaterial.fromFiles", files, TLS_FILE_PATHS, filesProblems);
    return new ExistingMaterial(files);
  }

  /**
   * The files `tls.crt` and `tls.key` in a directory, such as a mounted Secret of type kubernetes.io/tls.
   *
   * @param directory absolute path of the mounted Secret
   */
  static fromSecret(directory: string = CONTAINER_PATHS.tlsDirectory): TlsMaterial {
    refuseOptions("TlsMaterial.fromSecret", { directory }, { directory: required(text) }, (fit) =>
      hostPathProblems(fit, "TlsMaterial.fromSecret"),
    );
    return TlsMaterial.fromFiles({ certificate: `${directory}/tls.crt`, key: `${directory}/tls.key` });
  }

  /**
   * A certificate that browsers trust. The proxy orders and renews the certificate (ACME, RFC 8555), by default from
   * Let's Encrypt. Until the first certificate is issued, the proxy uses a temporary self-signed certificate. A new
   * certificate needs no reload and cuts no connection.
   *
   * The host creates key and account in /var/lib/portico-certificates; neither enters synthesis or state. See
   * docs/certificates.md.
   */
  static acme(options: AcmeOptions): TlsMaterial {
    refuseAcme("TlsMaterial.acme", options);
    return new AcmeMaterial(options);
  }

  /**
   * @internal Material of the same kind for the names of a further site, with a certificate of its own; undefined where
   * this material's certificate is for them as well.
   */
  abstract another(serverNames: readonly string[]): TlsMaterial | undefined;

  /** @internal Makes the constructs of this material. */
  abstract bind(scope: Construct, context: TlsContext): TlsFiles;
}

/** Paths of the TLS material's files on the host. */
export interface TlsFiles {
  /** PEM file on the host: the certificate, then its chain; undefined for a certificate by ACME. */
  readonly certificate?: string;
  /** PEM file on the host: the private key; undefined for a key of an ACME certificate. */
  readonly key?: string;
  /** PEM file on the host: Diffie-Hellman parameters; undefined if there are none. */
  readonly dhparam?: string;
  /** The resources of a self-signed material; undefined for existing files. */
  readonly selfSigned?: SelfSignedTls;
  /** @internal Whether the key may be of any type. */
  readonly anyKeyType?: boolean;
  /** @internal The files that something on the host may renew. */
  readonly renewedOnHost?: readonly string[];
  /** @internal The config of a certificate by ACME; its names are known when the app is synthesized. */
  readonly acme?: () => AcmeCertificateInput;
  /** @internal Files that the proxy reads when it asks the authority. */
  readonly authorityFiles?: Readonly<Record<string, string>>;
}

/** Existing files on the host. */
export interface TlsFilePaths extends Omit<
  Pick<InputOf<typeof tls>, "certificate" | "key" | "dhparam">,
  "dhparam"
> {
  readonly certificate: string;
  readonly key: string;
  /**
   * @remarks `false` for no parameters, which disables these cipher suites.
   * @default - the ffdhe2048 group of RFC 7919, written next to the proxy's other TLS files
   */
  readonly dhparam?: string | false;
}

/** @internal The place in which a proxy runs, as far as materials are concerned. */
export interface TlsPlace {
  /** The host; undefined where Terraform puts no files. */
  readonly host?: IHost;
  readonly directory: string;
  /** Path of the Diffie-Hellman parameters, which the materials of a proxy share. */
  readonly dhParameters: () => string;
}

/** @internal The context of a material. */
export interface TlsContext extends TlsPlace {
  /** Id of the construct that uses the material first, if any does. */
  readonly user: string | undefined;
  /** Whether clients get the certificate for any name, and not just for those of some virtual servers. */
  readonly forHost: () => boolean;
  /** Server names that clients use on the listeners of the material, as far as they have been added. */
  readonly serverNames: () => readonly string[];
  /** Has the config name an authority; its name there. */
  readonly addAuthority: (options: AcmeOptions) => string;
}

/** Key, certificate and parameters from Terraform, and their files. */
export class SelfSignedTls extends Construct {
  /** The resource of the key; state contains the key in plain text. */
  readonly privateKey: PrivateKeyResource;
  /** The resource of the certificate. */
  readonly certificate: SelfSignedCertResource;
  /** File of the key, readable by root only. */
  readonly keyFile: HostFile;
  /** File of the certificate. */
  readonly certificateFile: HostFile;
  /** File of the Diffie-Hellman parameters, shared by the materials of a proxy. */
  readonly dhParametersFile: HostFile;

  /**
   * @internal Made through `TlsMaterial.selfSigned`.
   * @param suffix of the names of its files
   */
  constructor(
    scope: Construct,
    id: string,
    context: HostContext,
    options: SelfSignedOptions,
    suffix: string,
  ) {
    super(scope, freeId(scope, id));
    const { host, directory } = context;
    const { validityDays = DEFAULT_VALIDITY_DAYS } = options;
    const { renewalDays = defaultRenewalDays(validityDays) } = options;
    this.privateKey = privateKey(this, "PrivateKey", 2048);
    this.certificate = selfSignedCert(this, "Certificate", {
      privateKeyPem: this.privateKey.privateKeyPem,
      ...subject(context, options),
      allowedUses: ["digital_signature", "key_encipherment", "server_auth"],
      setSubjectKeyId: true,
      validityPeriodHours: validityDays * 24,
      earlyRenewalHours: renewalDays * 24,
    });
    this.keyFile = new HostFile(this, "KeyFile", {
      host,
      path: `${directory}/privkey${suffix}.pem`,
      content: this.privateKey.privateKeyPem,
      mode: "0600",
      role: "tls",
      sensitive: true,
    });
    this.certificateFile = new HostFile(this, "CertificateFile", {
      host,
      path: `${directory}/cacert${suffix}.pem`,
      content: this.certificate.certPem,
      role: "tls",
    });
    this.certificateFile.checkLate(() =>
      (options.dnsNames ?? []).flatMap((name, i) =>
        lateText("config.bad-server-name", `TlsMaterial.selfSigned.dnsNames[${i}]`, DNS_NAME, name),
      ),
    );
    this.dhParametersFile = dhParametersFile(scope, context);
  }
}

/**
 * Subject and alternative names: clients compare only the latter, and addresses need a separate kind (RFC 6125).
 * Virtual servers are added after their listener, so the names are collected when the app is synthesized.
 */
function subject({ host, serverNames, forHost }: HostContext, options: SelfSignedOptions) {
  const served = (): string[] => serverNames().filter((name) => name !== CATCH_ALL);
  const main = (forHost() ? undefined : served()[0]) ?? host.serverNames[0];
  // A common name has at most 64 characters (RFC 5280, ub-common-name).
  const commonName = isKnown(main) && main.length > 64 ? host.clientAddress : main;
  const addresses = [host.clientAddress, ...(host.ipv6Address === undefined ? [] : [host.ipv6Address])];
  const isAddress = (name: string): boolean => isIP(name) !== 0 || addresses.includes(name);
  const names = (): string[] => [
    ...new Set([
      ...(host.publicName === undefined || !forHost() ? [] : [host.publicName]),
      ...(options.dnsNames ?? []),
      ...served(),
    ]),
  ];
  // The host says that an address is none, by its prop; Terraform's provider could not name it.
  const parsable = (address: string): string =>
    hasTokens(address) ? lateAddress(address, address === host.ipv6Address ? 128 : 32, "0.0.0.0") : address;
  // A list without names is left out.
  const list = (produce: () => string[]): string[] => Lazy.listValue({ produce }, { omitEmpty: true });
  return {
    subject: [{ commonName }],
    dnsNames: list(() => names().filter((name) => !isAddress(name))),
    ipAddresses: list(() =>
      [...new Set([...(forHost() ? addresses : []), ...names().filter(isAddress)])].map(parsable),
    ),
  };
}

type HostContext = TlsContext & { readonly host: IHost };

class SelfSignedMaterial extends TlsMaterial {
  override readonly selfSigned = true;

  constructor(private readonly options: SelfSignedOptions) {
    super();
  }

  override another(): TlsMaterial {
    return new SelfSignedMaterial({ ...this.options, dnsNames: undefined });
  }

  override bind(scope: Construct, context: TlsContext): TlsFiles {
    const { host } = context;
    if (host === undefined) throw new ProblemError([noHost(scope)]);
    const first = scope.node.tryFindChild("Tls") === undefined;
    const suffix = first ? "" : `-${context.user}`;
    if (scope.node.tryFindChild(`Tls${suffix}`) !== undefined) {
      const fix = "Use another id for the construct: the names of the files contain the id.";
      const message = `already has self-signed material for ${context.user}, with files of the same names`;
      refuse([problem("config.duplicate-name", scope.node.path, message, { fix })]);
    }
    const tls = new SelfSignedTls(scope, `Tls${suffix}`, { ...context, host }, this.options, suffix);
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

  override another(): undefined {
    return undefined;
  }

  override bind(_: Construct, context: TlsContext): TlsFiles {
    const { dhparam, ...pair } = this.files;
    const own = {
      ...pair,
      anyKeyType: true,
      renewedOnHost: Object.values(this.files).filter((file) => !!file),
    };
    return dhparam === false ? own : { ...own, dhparam: dhparam ?? context.dhParameters() };
  }
}

class AcmeMaterial extends TlsMaterial {
  constructor(private readonly options: AcmeOptions) {
    super();
  }

  override another(serverNames: readonly string[]): TlsMaterial | undefined {
    const { names, ...options } = this.options;
    return names !== undefined && serverNames.every((name) => names.includes(name))
      ? undefined
      : new AcmeMaterial(options);
  }

  override bind(scope: Construct, context: TlsContext): TlsFiles {
    warnOfExampleAddress(scope, this.options);
    const { names, keyType, roots, externalAccountBinding, dns } = this.options;
    const authority = context.addAuthority(this.options);
    const served = (): string[] => context.serverNames().filter((name) => name !== CATCH_ALL);
    const wanted = (): readonly string[] => {
      const all = names ?? [...new Set(served())];
      return all.length > 0 ? all : (context.host?.serverNames ?? []);
    };
    return {
      dhparam: context.dhParameters(),
      acme: () => ({ authority, names: [...wanted()], keyType }),
      authorityFiles: {
        ...(roots === undefined ? {} : { roots }),
        ...(externalAccountBinding === undefined ? {} : { keyFile: externalAccountBinding.keyFile }),
        ...Object.fromEntries(Object.entries(dnsFiles(dns)).map(([field, file]) => [`dns.${field}`, file])),
      },
    };
  }
}

const noHost = ({ node }: Construct): Problem =>
  problem(
    "container.no-host",
    node.path,
    "has self-signed material, but a container has no host to store it on",
    {
      allowed: "a certificate from a Secret, or from files on a volume",
      fix: "Create a Secret with cert-manager or `kubectl create secret tls`, and use `TlsMaterial.fromSecret()`.",
    },
  );

const TLS_FILE_PATHS: PropTable<TlsFilePaths> = {
  certificate: required(text),
  key: required(text),
  dhparam: either(choice(false), text),
};

function filesProblems(files: Partial<TlsFilePaths>): Problem[] {
  return (["certificate", "key", "dhparam"] as const).flatMap((name) => {
    const path = files[name];
    if (path === undefined || path === false || !isKnown(path) || (isFilePath(path) && !path.endsWith("/")))
      return [];
    const more = {
      received: path,
      allowed: "an absolute path on the host, without `//`, `.` or `..` segments",
    };
    return [
      problem("config.bad-file-path", `TlsMaterial.fromFiles.${name}`, "is not the path of a file", more),
    ];
  });
}

/** The parameters are not secret and the same for everyone, so the materials of a proxy share them. */
export function dhParametersFile(scope: Construct, place: { host: IHost; directory: string }): HostFile {
  const id = "DhParameters";
  const existing = scope.node.tryFindChild(id);
  if (existing !== undefined) return existing as HostFile;
  return new HostFile(scope, id, {
    host: place.host,
    path: `${place.directory}/dhparam2048.pem`,
    content: dhParametersPem(),
    role: "tls",
  });
}
