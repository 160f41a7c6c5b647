import type { Challenge } from "../dispatch/challenge.js";
import { unfitCertificate } from "../tls/handshakeCheck.js";
import { certificateWarnings } from "../load/certificateExpiry.js";
import type { LoadedConfig } from "../load/loadConfig.js";
import { RenewalWatch } from "../load/renewalWatch.js";
import type { CertificateContents, TlsRenewal } from "../tls/tlsContents.js";
import type { WantedCertificate } from "../../model/serving.js";
import { CertificateManager } from "./certificateManager.js";
import { listCertificates } from "./certificateList.js";
import type { ControlOutcome, Done } from "./control.js";
import type { MasterLog } from "./masterLog.js";
import { problemLine } from "./masterReport.js";

/** What the certificates of a master need from it. */
export interface CertificatesHost {
  /** What is in service now. */
  loaded(): LoadedConfig;
  /** Puts what was renewed into service. */
  install(renewal: TlsRenewal): Promise<void>;
  /** Resolves when every worker that accepts answers these challenges. */
  answerChallenges(challenges: readonly Challenge[]): Promise<void>;
}

/**
 * Manages the certificates that a master serves: loads renewed files, gets and renews certificates by ACME, and warns
 * of those that expire soon.
 */
export class ServedCertificates {
  private readonly renewals: RenewalWatch;
  private readonly manager: CertificateManager;
  private readonly daily: NodeJS.Timeout;

  /** @param acmeDirectory where certificates by ACME are kept; undefined if there is no place for them */
  constructor(
    acmeDirectory: string | undefined,
    private readonly logs: MasterLog,
    private readonly host: CertificatesHost,
  ) {
    this.renewals = new RenewalWatch(() => host.loaded(), {
      renewed: async (renewal, message, warnings) => {
        await host.install(renewal);
        logs.write("info", message);
        for (const p of warnings) logs.warn(p);
      },
      refused: (message, [first]) => logs.write("warn", `${message}: ${problemLine(first!)}`),
    });
    const unfit = (certificate: CertificateContents) =>
      unfitCertificate(certificate, certificate.id, host.loaded());
    this.manager = new CertificateManager(acmeDirectory, { ...host, unfit }, logs);
    this.daily = setInterval(() => this.warnOfExpiry(), DAY_MS).unref();
  }

  /** What listeners can use: issued certificates by ACME, or temporary ones in their place. */
  issued(wanted: readonly WantedCertificate[]): Promise<readonly CertificateContents[]> {
    return this.manager.issued(wanted);
  }

  /** Watches the files of the config that is in service now. */
  async begin(): Promise<void> {
    await this.renewals.begin();
  }

  /** Asks authorities for the certificates that the current config wants. Only a main master may. */
  lookAfter(): void {
    this.manager.lookAfter(this.host.loaded().config);
  }

  /** Leaves the authorities to another master. */
  leave(): Promise<void> {
    return this.manager.stop();
  }

  async stop(): Promise<void> {
    this.renewals.stop();
    clearInterval(this.daily);
    await this.manager.stop();
  }

  list(): Done {
    const certificates = listCertificates(this.host.loaded(), this.manager.status());
    const message = certificates.length === 1 ? "1 certificate" : `${certificates.length} certificates`;
    return { message, warnings: [], certificates };
  }

  /** @param name one of the names of a certificate by ACME; undefined for all of them */
  async renew(name: string | undefined): Promise<ControlOutcome> {
    const renewed = await this.manager.renew(name);
    return renewed.ok ? { ok: true, value: { message: renewed.value, warnings: [] } } : renewed;
  }

  private warnOfExpiry(): void {
    const { config, tls } = this.host.loaded();
    for (const p of certificateWarnings(config, tls)) this.logs.warn(p);
  }
}

const DAY_MS = 24 * 3_600_000;
