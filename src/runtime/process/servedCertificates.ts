import { certificateWarnings } from "../load/certificateExpiry.js";
import type { LoadedConfig } from "../load/config.js";
import { RenewalWatch } from "../load/renewalWatch.js";
import type { CertificateContents } from "../load/tlsContents.js";
import type { MasterLog } from "./masterLog.js";
import { problemLine } from "./masterReport.js";

/** Looks after the certificates that a master serves: takes renewed files, and warns of those that are about to expire. */
export class ServedCertificates {
  private readonly renewals: RenewalWatch;
  private readonly daily: NodeJS.Timeout;

  /**
   * @param loaded what is in service now
   * @param install puts a renewed certificate into service
   */
  constructor(
    private readonly loaded: () => LoadedConfig,
    install: (certificate: CertificateContents) => Promise<void>,
    private readonly logs: MasterLog,
  ) {
    this.renewals = new RenewalWatch(loaded, {
      renewed: async (certificate, message, warnings) => {
        await install(certificate);
        logs.write("info", message);
        for (const p of warnings) logs.warn(p);
      },
      refused: (message, [first]) => logs.write("warn", `${message}: ${problemLine(first!)}`),
    });
    this.daily = setInterval(() => this.warnOfExpiry(), DAY_MS).unref();
  }

  /** Looks after those of the config that is in service now. */
  async begin(): Promise<void> {
    await this.renewals.begin();
  }

  stop(): void {
    this.renewals.stop();
    clearInterval(this.daily);
  }

  private warnOfExpiry(): void {
    const { config, tls } = this.loaded();
    for (const p of certificateWarnings(config, tls)) this.logs.warn(p);
  }
}

const DAY_MS = 24 * 3_600_000;
