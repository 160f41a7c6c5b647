import type { Construct } from "constructs";
import type { IHost } from "../host.js";
import { HostFile } from "../hostFile.js";
import { type SelfSignedTls, type TlsContext, type TlsFiles, TlsMaterial } from "../tlsMaterial.js";

/** A key and a certificate that Terraform has made for another host, on this one too. */
export class SharedMaterial extends TlsMaterial {
  override readonly selfSigned = true;

  constructor(
    private readonly tls: SelfSignedTls,
    private readonly host: IHost,
  ) {
    super();
  }

  override bind(scope: Construct, context: TlsContext): TlsFiles {
    const { keyFile, certificateFile, privateKey, certificate } = this.tls;
    const { host } = this;
    const copy = (id: string, { path, mode, role, sensitive }: HostFile, content: string): HostFile =>
      new HostFile(scope, id, { host, path, mode, role, sensitive, content });
    return {
      key: copy("KeyFile", keyFile, privateKey.privateKeyPem).path,
      certificate: copy("CertificateFile", certificateFile, certificate.certPem).path,
      dhparam: context.dhParameters(),
      selfSigned: this.tls,
    };
  }
}
