import { problem, type Result } from "../../model/serving.js";
import type { CertificateContents } from "../tls/tlsContents.js";
import { AcmeAuthority } from "./authority.js";
import {
  contentsOf,
  folderOf,
  type StoredCertificate,
  readCertificate,
  readCertificates,
  standIn,
} from "./certificateFile.js";
import { OpenChallenges } from "./challenges.js";
import { type Clock, systemClock } from "./clock.js";
import { type AcmeHost, type CertificateStatus, LEFT, type OrderedCertificate } from "./acmeHost.js";
import { type OrderCallback, ManagedCertificate } from "./managedCertificate.js";

export type * from "./acmeHost.js";
export { temporaryCertificate } from "./x509.js";

/**
 * Gets certificates from authorities by ACME (RFC 8555), keeps them on disk and renews them.
 *
 *     DIRECTORY/AUTHORITY-HASH/account.json     key and URL of the account
 *     DIRECTORY/AUTHORITY-HASH/limits.json      counts for the authority's limits
 *     DIRECTORY/certificates/ID/certificate.pem key and chain, as one file
 *     DIRECTORY/certificates/ID/order.json      an order in progress, with the key of its certificate
 *     DIRECTORY/certificates/ID/history.json    failures, and the authority's renewal information
 *
 * Only one process at a time may manage certificates; others may read them.
 */
export class AcmeEngine {
  private readonly managed = new Map<string, ManagedCertificate>();
  private readonly authorities = new Map<string, AcmeAuthority>();
  private readonly challenges: OpenChallenges;
  private readonly stopping = new AbortController();
  /** Managed certificates that end, by id: the next one of the same id starts after it. */
  private readonly ending = new Map<string, Promise<void>>();

  /** @param directory where its state is kept; made if there is none */
  constructor(
    private readonly directory: string,
    private readonly host: AcmeHost,
    private readonly clock: Clock = systemClock,
  ) {
    this.challenges = new OpenChallenges(host, clock);
  }

  /**
   * Certificates on the disk, whether they are still valid or not; does not ask an authority. In place of a certificate
   * that is not there yet stands one for other names, if it covers the first name.
   */
  async stored(wanted: readonly OrderedCertificate[]): Promise<ReadonlyMap<string, CertificateContents>> {
    const found = new Map<string, CertificateContents>();
    let all: Promise<readonly StoredCertificate[]> | undefined;
    for (const one of wanted) {
      const own = await readCertificate(folderOf(this.directory, one.id)).catch(() => undefined);
      const kept = own ?? standIn(await (all ??= readCertificates(this.directory)), one);
      if (kept !== undefined)
        found.set(one.id, contentsOf(one, kept, own === undefined ? "temporary" : "acme"));
    }
    return found;
  }

  /** Starts managing these certificates, and no others; never throws. Those no longer wanted stay on disk. */
  lookAfter(wanted: readonly OrderedCertificate[]): void {
    if (this.stopping.signal.aborted) return;
    const next = new Map(wanted.map((one) => [one.id, one]));
    for (const [id, certificate] of this.managed) {
      if (JSON.stringify(next.get(id)) !== JSON.stringify(certificate.wanted)) this.end(id, certificate);
    }
    for (const [id, one] of next) if (!this.managed.has(id)) this.begin(id, one);
  }

  status(): readonly CertificateStatus[] {
    return [...this.managed.values()].map((certificate) => certificate.status());
  }

  /**
   * Asks the authority now, as far as its limits allow it; resolves when all have ended.
   *
   * @param name one of a certificate's names; default: all certificates
   */
  async renewNow(name?: string): Promise<Result<string>> {
    const all = [...this.managed.values()];
    const chosen = name === undefined ? all : all.filter(({ wanted }) => wanted.names.includes(name));
    if (chosen.length === 0) {
      const allowed =
        all.flatMap(({ wanted }) => wanted.names).join(", ") || "the config has no such certificate";
      const message = "is not a name of a certificate that portico gets from an authority";
      return { ok: false, problems: [problem("acme.unknown-name", name ?? "", message, { allowed })] };
    }
    const failures = await Promise.all(chosen.map((certificate) => certificate.renewNow()));
    const problems = failures.flatMap((failure, i) => {
      if (failure === undefined) return [];
      const { names, authority } = chosen[i]!.wanted;
      const message = `was not issued by ${authority.name}: ${failure.message}`;
      return [problem("acme.not-issued", names.join(", "), message, { fix: failure.fix })];
    });
    if (problems.length > 0) return { ok: false, problems };
    return { ok: true, value: `renewed: ${chosen.flatMap(({ wanted }) => wanted.names).join(", ")}` };
  }

  /** Leaves orders in progress to the next master, and the responses to their challenges as they are now. */
  async stop(): Promise<void> {
    this.stopping.abort();
    for (const [id, certificate] of this.managed) this.end(id, certificate);
    await Promise.all(this.ending.values());
    await this.challenges.stop();
  }

  private begin(id: string, wanted: OrderedCertificate): void {
    const { directory, challenges, host, clock } = this;
    const authority = this.authority(wanted);
    const changed = this.ending.has(id);
    const certificate = new ManagedCertificate({
      wanted,
      authority,
      directory,
      challenges,
      host,
      clock,
      changed,
    });
    this.managed.set(id, certificate);
    certificate.start(this.ending.get(id) ?? Promise.resolve());
  }

  private end(id: string, certificate: ManagedCertificate): void {
    this.managed.delete(id);
    const ended = certificate.stop().then((asked) => {
      if (this.ending.get(id) === ended) this.ending.delete(id);
      this.respond(id, asked);
    });
    this.ending.set(id, ended);
  }

  /** Requests to one that ended get the response of the one in its place, if a changed config still wants it. */
  private respond(id: string, asked: readonly OrderCallback[]): void {
    const next = this.managed.get(id);
    for (const response of asked) response(next === undefined ? LEFT : next.renewNow());
  }

  private authority({ authority: config, files }: OrderedCertificate): AcmeAuthority {
    const key = JSON.stringify([config, files]);
    const known = this.authorities.get(key);
    if (known !== undefined) return known;
    const made = new AcmeAuthority(config, this.directory, this.clock, this.stopping.signal);
    this.authorities.set(key, made);
    return made;
  }
}
