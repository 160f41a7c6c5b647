import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { type Problem, tlsPolicySettings } from "../../model/serving.js";
import { type CertificateFiles, loadCertificate } from "./certificate.js";
import { nameWarnings } from "./certificateNames.js";
import { certificatePlaces } from "./certificatePlaces.js";
import type { LoadedConfig } from "./config.js";
import { credentials } from "./credentials.js";
import { FileWatch, type WatchedFiles } from "./fileWatch.js";
import { type CertificateContents, withRenewed } from "./tlsContents.js";
import { handshakeProblem } from "./tlsPolicyCheck.js";

/** The outcome for files that changed. */
export interface RenewalEvents {
  renewed(certificate: CertificateContents, message: string, warnings: readonly Problem[]): void;
  /** What was loaded before stays in service. */
  refused(message: string, problems: readonly Problem[]): void;
}

/**
 * Notices certificates whose files were renewed, and loads them with the checks of a reload.
 *
 * systemd's credentials are left out. They do not change while a service runs; a reload hands over renewed ones
 * (`credentialSet.ts`).
 */
export class RenewalWatch {
  private readonly watch = new FileWatch();

  /** @param loaded what is in service now */
  constructor(
    private readonly loaded: () => LoadedConfig,
    private readonly events: RenewalEvents,
  ) {}

  /** Watches the files of the config that is in service now, and no others. */
  begin(): Promise<void> {
    return this.watch.begin(this.watchedFiles());
  }

  stop(): void {
    this.watch.stop();
  }

  private async watchedFiles(): Promise<WatchedFiles[]> {
    const watched = await filesOf(this.loaded());
    return watched.map((files) => ({
      paths: [files.certificate, files.key],
      changed: async (current) => {
        const renewal = await load(files, this.loaded());
        // A reload in between has loaded the files as well.
        if (renewal !== undefined && current()) this.report(files.label, renewal);
      },
    }));
  }

  private report(label: string, { certificate, problems, warnings }: Renewal): void {
    if (certificate === undefined) {
      this.events.refused(`${label} changed on disk and is refused, the one in service stays`, problems);
      return;
    }
    const { validTo } = new X509Certificate(certificate.cert);
    const message = `${label} was renewed, and is valid until ${new Date(validTo).toISOString()}`;
    this.events.renewed(certificate, message, warnings);
  }
}

interface Watched extends CertificateFiles {
  readonly id: string;
  readonly label: string;
}

/** Each pair of files once: listeners share them. */
async function filesOf({ config }: LoadedConfig): Promise<Watched[]> {
  const findCredential = await credentials();
  const watched = new Map<string, Watched>();
  for (const index of config.listeners.keys()) {
    for (const { source, at, label, id } of certificatePlaces(config, index)) {
      if (source.type !== "files" || watched.has(id)) continue;
      const { certificate, key } = source;
      const passed = (await findCredential(certificate)) ?? (await findCredential(key));
      if (passed === undefined) watched.set(id, { at, label, id, certificate, key });
    }
  }
  return [...watched.values()];
}

interface Renewal {
  /** Undefined if there are problems. */
  readonly certificate?: CertificateContents;
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
}

/** The files as they are now; undefined if they are what is in service. */
async function load(files: Watched, { config, tls }: LoadedConfig): Promise<Renewal | undefined> {
  const { id } = files;
  const places = config.listeners.flatMap((listener, index) => {
    const current = tls[listener.name]?.certificates.find((one) => one.id === id);
    return current === undefined ? [] : [{ listener, index, current }];
  });
  const text = (path: string): Promise<string> => readFile(path, "utf8").catch(() => "");
  const [key, cert] = await Promise.all([text(files.key), text(files.certificate)]);
  if (places.every(({ current }) => current.key === key && current.cert === cert)) return undefined;

  const one = await loadCertificate(files, "problem", () => Promise.resolve(undefined));
  if (one.loaded === undefined) return one;
  for (const { listener } of places) {
    const policy = tlsPolicySettings(listener.tls!.policy);
    const unfit = await handshakeProblem(policy, one.loaded, tls[listener.name]!.dhparam, files.at);
    if (unfit !== undefined) return { problems: [unfit], warnings: [] };
  }
  const certificate = one.loaded.contents;
  const { index, listener } = places[0]!;
  const names = nameWarnings(config, index, withRenewed(tls, [certificate])[listener.name]!.certificates);
  return { certificate, problems: [], warnings: [...one.warnings, ...names] };
}
