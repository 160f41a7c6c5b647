import { join } from "node:path";
import type { AcmeCertificates, AcmeHost, CertificateStatus } from "../acme/certificates.js";
import { LEFT } from "../acme/acmeHost.js";
import { filesMark } from "../load/authorityFiles.js";
import type { CertificateContents, TlsRenewal } from "../tls/tlsContents.js";
import { wantedCertificates } from "../load/wantedCertificates.js";
import { Queue } from "../queue.js";
import type { MasterLog } from "./masterLog.js";
import {
  type Problem,
  problem,
  type ProxyConfig,
  type Result,
  type WantedCertificate,
} from "../../model/serving.js";

/** What certificates by ACME need from the master. */
export interface CertificateManagerHost extends Pick<AcmeHost, "answerChallenges"> {
  /** Why a listener could not use a certificate in place of the one with its id. */
  unfit(certificate: CertificateContents): Promise<Problem | undefined>;
  install(renewal: TlsRenewal): Promise<void>;
}

/**
 * The master's side of certificates by ACME. The engine that asks authorities is loaded only if a config wants such a
 * certificate, and runs only in the main master: if two masters run at once, one must not order what the other already
 * has.
 */
export class CertificateManager {
  private engine: AcmeCertificates | undefined;
  /** Certificates in use, by id, issued or temporary. */
  private readonly serving = new Map<string, CertificateContents>();
  private readonly changes = new Queue();
  private warned = false;
  /** Whether another master may have the certificates by now. */
  private left = false;

  /** @param directory of the state; undefined if there is none: then no certificate is requested */
  constructor(
    private readonly directory: string | undefined,
    private readonly host: CertificateManagerHost,
    private readonly logs: Pick<MasterLog, "write">,
  ) {}

  /** What listeners can use at once: an issued certificate, or a temporary one. Does not ask an authority. */
  async issued(wanted: readonly WantedCertificate[]): Promise<readonly CertificateContents[]> {
    if (wanted.length === 0) return [];
    const { AcmeCertificates, temporaryCertificate } = await import("../acme/certificates.js");
    const state = this.directory === undefined ? undefined : new AcmeCertificates(this.directory, IDLE_HOST);
    const stored = await state?.stored(wanted);
    for (const { id, names, keyType } of wanted) {
      const found = stored?.get(id);
      if (found !== undefined) {
        const { key, cert, standsIn } = found;
        this.serving.set(id, { id, source: standsIn ? "temporary" : "acme", names, key, cert });
      } else if (this.serving.get(id)?.source !== "temporary")
        this.serving.set(id, { id, source: "temporary", ...(await temporaryCertificate(names, keyType)) });
    }
    return wanted.map(({ id }) => this.serving.get(id)!);
  }

  /** From now on manages the certificates that a config wants, and no others. */
  lookAfter(config: ProxyConfig): void {
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

  /** Leaves all certificates to another master, or to the next start. */
  stop(): Promise<void> {
    return this.change(async () => {
      const { engine } = this;
      this.engine = undefined;
      this.left = engine !== undefined;
      await engine?.stop();
    });
  }

  status(): readonly CertificateStatus[] {
    return this.engine?.status() ?? [];
  }

  /** @param name of a certificate; default: all */
  async renew(name: string | undefined): Promise<Result<string>> {
    await this.changes.do(() => undefined);
    if (this.engine !== undefined) return this.engine.renewNow(name);
    const { message, fix } = LEFT;
    const why = this.left
      ? problem("acme.not-issued", name ?? "", `was not issued: ${message}`, { fix })
      : problem("acme.unknown-name", name ?? "", "portico gets no certificate from an authority");
    return { ok: false, problems: [why] };
  }

  private async startEngine(directory: string): Promise<AcmeCertificates> {
    const { AcmeCertificates } = await import("../acme/certificates.js");
    const { host, logs } = this;
    return new AcmeCertificates(directory, {
      answerChallenges: host.answerChallenges,
      unfit: async (id, issued) => (await host.unfit({ id, source: "acme", ...issued }))?.message,
      log: (level, message) => logs.write(level, message),
      install: (id, issued) => {
        const contents = { ...this.serving.get(id), id, source: "acme", ...issued } as const;
        this.serving.set(id, contents);
        void host.install({ certificates: [contents] });
      },
    });
  }

  private warnOfNoDirectory(): void {
    if (this.warned) return;
    this.warned = true;
    const fix = "give `portico serve --state DIR`, or StateDirectory= in the service's unit";
    this.logs.write("warn", `no certificate is asked for, as there is no directory to keep it in: ${fix}`);
  }

  /** One after the other, in the order they were asked for. */
  private change(step: () => Promise<void>): Promise<void> {
    return this.changes
      .do(step)
      .catch((error: Error) =>
        this.logs.write("error", `certificates are not looked after: ${error.message}`),
      );
  }
}

/** For reading what is stored, without asking an authority. */
const IDLE_HOST: AcmeHost = {
  answerChallenges: () => Promise.resolve(),
  unfit: () => Promise.resolve(undefined),
  install: () => undefined,
  log: () => undefined,
};

/** Where the state of certificates is; `undefined` if there is no place for it. Several directories are separated by colons. */
export function acmeDirectory(state: string | undefined): string | undefined {
  const [directory = ""] = (state ?? process.env["STATE_DIRECTORY"] ?? "").split(":");
  return directory === "" ? undefined : join(directory, ACME_FOLDER);
}

/** Folder of the state directory that everything by ACME is in. */
export const ACME_FOLDER = "acme";
