import { DAY_MS } from "../../../model/text/duration.js";
import { join } from "node:path";
import type { AcmeEngine, AcmeHost, CertificateStatus } from "../../acme/engine.js";
import { LEFT } from "../../acme/acmeHost.js";
import type { Challenge } from "../../dispatch/challenge.js";
import { filesMark } from "../../load/authorityFiles.js";
import { clientAuthorityStates, clientAuthorityWarnings } from "../../load/clientAuthorities.js";
import { certificateWarnings } from "../../load/certificateExpiry.js";
import type { LoadedConfig } from "../../load/loadConfig.js";
import { RenewalWatch } from "../../load/renewalWatch.js";
import { wantedCertificates } from "../../load/wantedCertificates.js";
import { unfitCertificate } from "../../tls/handshakeCheck.js";
import type { CertificateContents } from "../../tls/tlsContents.js";
import type { Renewal } from "../../load/renewal.js";
import { Queue } from "../../queue.js";
import { problem, type Result, type WantedCertificate } from "../../../model/serving.js";
import { listCertificates } from "../control/certificateList.js";
import type { ControlOutcome, Done } from "../control/control.js";
import type { MasterLog } from "../report/masterLog.js";
import { problemLine } from "../report/masterReport.js";

/** The certificate manager's interface to its master. */
export interface CertificateManagerHost {
  /** The config in service, with its files. */
  loaded(): LoadedConfig;
  /** Puts renewed material into service. */
  install(renewal: Renewal): Promise<void>;
  /** Resolves when every worker that accepts responds to these challenges. */
  respondToChallenges(challenges: readonly Challenge[]): Promise<void>;
}

/**
 * Manages the certificates that a master serves: loads renewed files, gets and renews certificates by ACME, and warns
 * of those that expire soon. The engine that asks authorities is loaded only if a config wants such a certificate, and
 * runs only in the main master: if two masters run at once, they must not order the same certificates.
 */
export class CertificateManager {
  private readonly renewals: RenewalWatch;
  private readonly daily: NodeJS.Timeout;
  private engine: AcmeEngine | undefined;
  /** Certificates in use, by id, issued or temporary. */
  private readonly serving = new Map<string, CertificateContents>();
  private readonly changes = new Queue();
  private warned = false;
  /** Whether another master may have the certificates by now. */
  private left = false;

  /** @param directory of the state of ACME; undefined if there is none: then no certificate is requested */
  constructor(
    private readonly directory: string | undefined,
    private readonly logs: Pick<MasterLog, "write" | "warn">,
    private readonly host: CertificateManagerHost,
  ) {
    this.renewals = new RenewalWatch(() => host.loaded(), {
      renewed: async (renewal, message, warnings) => {
        await host.install(renewal);
        logs.write("info", message);
        for (const p of warnings) logs.warn(p);
      },
      refused: (message, [first]) => logs.write("warn", `${message}: ${problemLine(first!)}`),
    });
    this.daily = setInterval(() => this.warnOfExpiry(), DAY_MS).unref();
  }

  /** Certificates that listeners can use at once: issued or temporary ones. Sends no request to an authority. */
  async issued(wanted: readonly WantedCertificate[]): Promise<readonly CertificateContents[]> {
    if (wanted.length === 0) return [];
    const { AcmeEngine, temporaryCertificate } = await import("../../acme/engine.js");
    const state = this.directory === undefined ? undefined : new AcmeEngine(this.directory, IDLE_HOST);
    const stored = await state?.stored(wanted);
    for (const { id, names, keyType } of wanted) {
      const found = stored?.get(id);
      if (found !== undefined) this.serving.set(id, found);
      else if (this.serving.get(id)?.source !== "temporary")
        this.serving.set(id, { id, source: "temporary", ...(await temporaryCertificate(names, keyType)) });
    }
    return wanted.map(({ id }) => this.serving.get(id)!);
  }

  /** Watches the files of the config that is in service now. */
  async begin(): Promise<void> {
    await this.renewals.begin();
  }

  /**
   * Asks authorities for the certificates that the current config wants, from now on, and for no others. Only a main
   * master may.
   */
  lookAfter(): void {
    const { config } = this.host.loaded();
    this.change(async () => {
      this.left = false;
      const { certificateAuthorities: authorities } = config;
      const marks = new Map(
        await Promise.all(authorities.map(async (one) => [one.name, await filesMark(one)] as const)),
      );
      const wanted = wantedCertificates(config).map((one) => ({
        ...one,
        files: marks.get(one.authority.name),
      }));
      if (wanted.length === 0 && this.engine === undefined) return;
      if (this.directory === undefined) return this.warnOfNoDirectory();
      this.engine ??= await this.startEngine(this.directory);
      this.engine.lookAfter(wanted);
    });
  }

  /** Leaves the authorities to another master, or to the next start. */
  leave(): Promise<void> {
    return this.change(async () => {
      const { engine } = this;
      this.engine = undefined;
      this.left = engine !== undefined;
      await engine?.stop();
    });
  }

  async stop(): Promise<void> {
    this.renewals.stop();
    clearInterval(this.daily);
    await this.leave();
  }

  list(): Done {
    const certificates = listCertificates(this.host.loaded(), this.status());
    const message = certificates.length === 1 ? "1 certificate" : `${certificates.length} certificates`;
    return { message, warnings: [], certificates };
  }

  /** The state of the authorities of clients. */
  clientAuthorities(at: number) {
    const { config, clientAuthorities = {} } = this.host.loaded();
    return clientAuthorityStates(clientAuthorities, at, config.notifications?.certificateDays);
  }

  /** The state of the certificates by ACME. */
  status(): readonly CertificateStatus[] {
    return this.engine?.status() ?? [];
  }

  /** @param name one of the names of a certificate by ACME; undefined for all of them */
  async renew(name: string | undefined): Promise<ControlOutcome> {
    await this.changes.do(() => undefined);
    const renewed = await (this.engine?.renewNow(name) ?? this.notRenewed(name));
    return renewed.ok ? { ok: true, value: { message: renewed.value, warnings: [] } } : renewed;
  }

  /** Why nothing can be renewed without the engine. */
  private notRenewed(name = ""): Result<string> {
    const { message, fix } = LEFT;
    const why = this.left
      ? problem("acme.not-issued", name, `was not issued: ${message}`, { fix })
      : problem("acme.unknown-name", name, "portico gets no certificate from an authority", {
          fix: "Renew the certificate files, or add a certificate by `acme` to the config.",
        });
    return { ok: false, problems: [why] };
  }

  private async startEngine(directory: string): Promise<AcmeEngine> {
    const { AcmeEngine } = await import("../../acme/engine.js");
    const { host, logs } = this;
    return new AcmeEngine(directory, {
      respondToChallenges: host.respondToChallenges,
      unfit: async (issued) => (await unfitCertificate(issued, issued.id, host.loaded()))?.message,
      log: (level, message) => logs.write(level, message),
      install: (issued) => {
        this.serving.set(issued.id, issued);
        void host.install({ certificates: [issued] });
      },
    });
  }

  private warnOfNoDirectory(): void {
    if (this.warned) return;
    this.warned = true;
    const fix = "run `portico serve --state DIR`, or set StateDirectory= in the service's unit";
    this.logs.write(
      "warn",
      `no certificate is requested, because there is no directory to store it in: ${fix}`,
    );
  }

  private warnOfExpiry(): void {
    const { config, tls, clientAuthorities = {} } = this.host.loaded();
    for (const p of certificateWarnings(config, tls)) this.logs.warn(p);
    for (const p of clientAuthorityWarnings(config, clientAuthorities)) this.logs.warn(p);
  }

  /** Runs changes one after the other, in the order of the calls. */
  private change(step: () => Promise<void>): Promise<void> {
    return this.changes
      .do(step)
      .catch((error: Error) =>
        this.logs.write("error", `certificates are no longer managed: ${error.message}`),
      );
  }
}

/** A host that reads stored certificates, without requests to an authority. */
const IDLE_HOST: AcmeHost = {
  respondToChallenges: () => Promise.resolve(),
  unfit: () => Promise.resolve(undefined),
  install: () => undefined,
  log: () => undefined,
};

/**
 * The directory of the state of ACME; `undefined` if there is none. systemd may give several, separated by colons: the first
 * is used.
 */
export function acmeDirectory(state: string | undefined): string | undefined {
  const [directory = ""] = (state ?? process.env["STATE_DIRECTORY"] ?? "").split(":");
  return directory === "" ? undefined : join(directory, ACME_FOLDER);
}

/** Folder of the state directory that has all state of ACME. */
export const ACME_FOLDER = "acme";
