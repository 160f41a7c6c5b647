import { type Problem, problem, type Result } from "../../model/serving.js";
import type { AcmeHost, CertificateStatus, Issued, WantedCertificate } from "./face.js";

export type * from "./face.js";
export { temporaryCertificate } from "./x509.js";

/** Gets certificates from CAs by ACME (RFC 8555), keeps them on disk and renews them. */
export class AcmeCertificates {
  private wanted: readonly WantedCertificate[] = [];

  /** @param directory where its state is kept; made if there is none */
  constructor(
    private readonly directory: string,
    private readonly host: AcmeHost,
  ) {}

  /** Usable certificates on the disk; does not ask a CA. */
  stored(wanted: readonly WantedCertificate[]): Promise<ReadonlyMap<string, Issued>> {
    return Promise.resolve(new Map(wanted.flatMap(() => [])));
  }

  /** Starts managing these certificates, and no others; never throws. Those no longer wanted stay on disk. */
  lookAfter(wanted: readonly WantedCertificate[]): void {
    this.wanted = wanted;
  }

  status(): readonly CertificateStatus[] {
    return this.wanted.map(({ id, names, authority }) => ({
      id,
      names,
      authority: authority.name,
      state: "none",
    }));
  }

  /** Asks the CA now, as far as it allows. @param name one of the names; default: all certificates */
  renewNow(name?: string): Promise<Result<string>> {
    const found: readonly Problem[] = [problem("serve.stopping", name ?? this.directory, "is not ready yet")];
    return Promise.resolve({ ok: false, problems: found });
  }

  /** Leaves orders in progress to the next master. */
  stop(): Promise<void> {
    return this.host.answer([]);
  }
}
