import { X509Certificate } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { type Problem, tlsPolicySettings } from "../../model/serving.js";
import { type CertificateFiles, loadCertificate } from "./certificate.js";
import { nameWarnings } from "./certificateNames.js";
import { certificatePlaces } from "./certificatePlaces.js";
import type { LoadedConfig } from "./config.js";
import { credentials } from "./credentials.js";
import { type CertificateContents, withRenewed } from "./tlsContents.js";
import { handshakeProblem } from "./tlsPolicyCheck.js";

/** The outcome for files that changed. */
export interface RenewalEvents {
  renewed(certificate: CertificateContents, message: string, warnings: readonly Problem[]): void;
  /** What was loaded before stays in service. */
  refused(message: string, problems: readonly Problem[]): void;
}

/**
 * Notices certificates whose files were renewed, as certbot does it, and loads them with the checks of a reload.
 *
 * It checks the files every few seconds: `fs.watch` does not notice that a link on the path to a file was switched, and
 * does not work at all on some file systems. Files are loaded when two checks in a row found the same state, so that
 * both key and certificate are complete.
 *
 * systemd's credentials are left out. They do not change while a service runs; a reload hands over renewed ones
 * (`credentialSet.ts`).
 */
export class RenewalWatch {
  private timer: NodeJS.Timeout | undefined;
  /** Changes when other files have to be watched. */
  private round = 0;

  /** @param loaded what is in service now */
  constructor(
    private readonly loaded: () => LoadedConfig,
    private readonly events: RenewalEvents,
  ) {}

  /** Watches the files of the config that is in service now, and no others. */
  async begin(): Promise<void> {
    this.stop();
    const { round } = this;
    const watched = await watchedFiles(this.loaded());
    if (watched.length > 0) this.lookLater(watched, round);
  }

  stop(): void {
    clearTimeout(this.timer);
    this.round += 1;
  }

  private lookLater(watched: readonly Watched[], round: number): void {
    if (round === this.round) this.timer = setTimeout(() => void this.look(watched, round), LOOK_MS).unref();
  }

  private async look(watched: readonly Watched[], round: number): Promise<void> {
    for (const one of watched) {
      const state = `${await stateOf(one.certificate)} ${await stateOf(one.key)}`;
      const settled = state === one.seen;
      one.seen = state;
      if (!settled || state === one.loaded) continue;
      one.loaded = state;
      const renewal = await load(one, this.loaded());
      // A reload in between has loaded the files as well.
      if (renewal !== undefined && round === this.round) this.report(one.label, renewal);
    }
    this.lookLater(watched, round);
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
  /** State of the files at the last check. */
  seen: string;
  /** State of the files when they were loaded last; at first unknown. */
  loaded: string;
}

/** Each pair of files once: listeners share them. */
async function watchedFiles({ config }: LoadedConfig): Promise<Watched[]> {
  const findCredential = await credentials();
  const watched = new Map<string, Watched>();
  for (const index of config.listeners.keys()) {
    for (const { source, at, label, id } of certificatePlaces(config, index)) {
      if (source.type !== "files" || watched.has(id)) continue;
      const { certificate, key } = source;
      const passed = (await findCredential(certificate)) ?? (await findCredential(key));
      if (passed === undefined) watched.set(id, { at, label, id, certificate, key, seen: "", loaded: "" });
    }
  }
  return [...watched.values()];
}

/** The file at a path and its state; stays the same until the file is written or replaced. */
async function stateOf(path: string): Promise<string> {
  const found = await stat(path, { bigint: true }).catch(() => undefined);
  return found === undefined ? "missing" : [found.dev, found.ino, found.size, found.mtimeNs].join(":");
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

/** Renewed files are in use after two checks. */
const LOOK_MS = 3_000;
