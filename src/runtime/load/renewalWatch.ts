import { X509Certificate } from "node:crypto";
import type { Problem } from "../../model/serving.js";
import { type CertificateFiles, loadCertificate } from "./certificate.js";
import { nameWarnings } from "./certificateNames.js";
import { certificatePlaces } from "./wantedCertificates.js";
import type { LoadedConfig } from "./loadConfig.js";
import { credentials } from "./credentials.js";
import { loadDhparam } from "./dhParameters.js";
import { textIfReadable } from "./files.js";
import { FileWatch, type WatchedFiles } from "./fileWatch.js";
import { withRenewed } from "../tls/tlsContents.js";
import { accessFiles, readAccessList, readUsers, userFiles } from "./accessLists.js";
import { type ClientAuthorityFiles, clientAuthorityFiles, readClientAuthority } from "./clientAuthorities.js";
import type { Renewal } from "./renewal.js";
import { handshakeProblem, unfitCertificate } from "../tls/handshakeCheck.js";
import { hostPolicy } from "../tls/tlsContexts.js";

/** The outcome for files that changed. */
export interface RenewalEvents {
  renewed(renewal: Renewal, message: string, warnings: readonly Problem[]): void;
  /** The material that was loaded before stays in service. */
  refused(message: string, problems: readonly Problem[]): void;
}

/**
 * Notices certificates whose files were renewed, Diffie-Hellman parameters, files of access policies, and authorities of
 * clients, and loads them with the checks of a reload.
 *
 * systemd's credentials are left out. They do not change while a service runs; a reload hands over renewed ones
 * (`credentialSet.ts`).
 */
export class RenewalWatch {
  private readonly watch = new FileWatch();

  /** @param loaded returns the config in service */
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
    return watched.map(({ label, paths, load }) => ({
      paths,
      changed: async (current) => {
        const outcome = await load(this.loaded());
        // A reload in between has loaded the files as well.
        if (outcome !== undefined && current()) this.report(label, outcome);
      },
    }));
  }

  private report(label: string, outcome: RenewalResult): void {
    const refused = `${label} changed on disk; the new one is refused, and the previous one stays in use`;
    if (outcome.ok) this.events.renewed(outcome.renewal, `${label} ${outcome.message}`, outcome.warnings);
    else this.events.refused(refused, outcome.problems);
  }
}

interface Watched {
  readonly label: string;
  /** Paths that change together. */
  readonly paths: readonly string[];
  /** Loads the files; undefined if their content is already in service. */
  load(loaded: LoadedConfig): Promise<RenewalResult | undefined>;
}

type RenewalResult =
  | {
      readonly ok: true;
      readonly renewal: Renewal;
      /** Continues from the label. */
      readonly message: string;
      readonly warnings: readonly Problem[];
    }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** Each file once: listeners share them. */
async function filesOf({ config }: LoadedConfig): Promise<Watched[]> {
  const findCredential = await credentials();
  const watched = new Map<string, Watched>();
  const watch = async (id: string, one: Watched): Promise<void> => {
    if (watched.has(id)) return;
    const passed = await Promise.all(one.paths.map(findCredential));
    if (passed.every((path) => path === undefined)) watched.set(id, one);
  };
  for (const [index, { tls }] of config.listeners.entries()) {
    for (const { source, at, label, id } of certificatePlaces(config, index)) {
      if (source.type !== "files") continue;
      const { certificate, key } = source;
      const load = (loaded: LoadedConfig) => loadPair(id, { at, certificate, key }, loaded);
      await watch(`certificate ${id}`, { label, paths: [certificate, key], load });
    }
    const dhparam = tls?.dhparam;
    if (dhparam === undefined) continue;
    const at = `listeners[${index}].tls`;
    const load = (loaded: LoadedConfig) => loadParameters(dhparam, at, loaded);
    await watch(`dhparam ${dhparam}`, { label: `${at}.dhparam (${dhparam})`, paths: [dhparam], load });
  }
  for (const [file, field] of accessFiles(config)) {
    const label = `${field} (${file})`;
    await watch(`list ${file}`, { label, paths: [file], load: (loaded) => loadList(file, label, loaded) });
  }
  for (const [file, field] of userFiles(config)) {
    const label = `${field} (${file})`;
    await watch(`users ${file}`, { label, paths: [file], load: (loaded) => loadUsers(file, field, loaded) });
  }
  for (const [key, files] of clientAuthorityFiles(config)) {
    const { at, ca, crl } = files;
    const load = (loaded: LoadedConfig) => loadAuthority(key, files, loaded);
    const paths = [ca, crl ?? []].flat();
    await watch(`authority ${key}`, { label: `${at} (${paths.join(", ")})`, paths, load });
  }
  return [...watched.values()];
}

async function loadAuthority(
  key: string,
  files: ClientAuthorityFiles,
  loaded: LoadedConfig,
): Promise<RenewalResult | undefined> {
  const { contents, problems, warnings } = await readClientAuthority(files, "problem");
  if (contents === undefined) return { ok: false, problems };
  const current = loaded.clientAuthorities?.[key];
  if (contents.ca === current?.ca && contents.crl === current.crl) return undefined;
  const message = "was read again: connections are judged by it from now on";
  return { ok: true, renewal: { clientAuthorities: { [key]: contents } }, message, warnings };
}

async function loadUsers(
  file: string,
  field: string,
  loaded: LoadedConfig,
): Promise<RenewalResult | undefined> {
  const { users, problems, warnings } = await readUsers(file, field, () => Promise.resolve(undefined));
  if (users === undefined) return { ok: false, problems };
  if (JSON.stringify(users) === JSON.stringify(loaded.accessUsers?.[file])) return undefined;
  const message = `was read again: ${users.length} ${users.length === 1 ? "user" : "users"}`;
  return { ok: true, renewal: { accessUsers: { [file]: users } }, message, warnings };
}

async function loadList(
  file: string,
  label: string,
  loaded: LoadedConfig,
): Promise<RenewalResult | undefined> {
  const read = await readAccessList(file, label);
  if ("problem" in read) return { ok: false, problems: [read.problem] };
  const { packed, size } = read.addresses;
  const { v4, v6 } = loaded.accessLists?.[file] ?? {};
  if (packed.v4 === v4 && packed.v6 === v6) return undefined;
  const message = `was read again: ${size} ${size === 1 ? "range" : "ranges"} of addresses`;
  return { ok: true, renewal: { accessLists: { [file]: packed } }, message, warnings: [] };
}

async function loadPair(
  id: string,
  files: CertificateFiles,
  loaded: LoadedConfig,
): Promise<RenewalResult | undefined> {
  const { config, tls } = loaded;
  const places = config.listeners.flatMap((listener, index) => {
    const current = tls[listener.name]?.certificates.find((one) => one.id === id);
    return current === undefined ? [] : [{ listener, index, current }];
  });
  const [key, cert] = await Promise.all([files.key, files.certificate].map(textIfReadable));
  if (places.every(({ current }) => current.key === key && current.cert === cert)) return undefined;

  const one = await loadCertificate(files, "problem", () => Promise.resolve(undefined));
  if (one.loaded === undefined) return { ok: false, problems: one.problems };
  const certificate = one.loaded.contents;
  const unfit = await unfitCertificate(certificate, files.at, loaded);
  if (unfit !== undefined) return { ok: false, problems: [unfit] };
  const { index, listener } = places[0]!;
  const renewal = { certificates: [certificate] };
  const names = nameWarnings(config, index, withRenewed(tls, renewal)[listener.name]!.certificates);
  const { validTo } = new X509Certificate(certificate.cert);
  const message = `was renewed, and is valid until ${new Date(validTo).toISOString()}`;
  return { ok: true, renewal, message, warnings: [...one.warnings, ...names] };
}

async function loadParameters(
  path: string,
  at: string,
  { config, tls }: LoadedConfig,
): Promise<RenewalResult | undefined> {
  const using = config.listeners.filter((listener) => listener.tls?.dhparam === path);
  const { text, problems } = await loadDhparam(path, at, () => Promise.resolve(undefined));
  if (text === undefined) return { ok: false, problems };
  if (using.every(({ name }) => tls[name]?.dhparam === text)) return undefined;
  for (const { name, tls: section } of using) {
    const contents = tls[name]?.certificates[0];
    if (contents === undefined) continue;
    const keyType = new X509Certificate(contents.cert).publicKey.asymmetricKeyType;
    const policy = hostPolicy(section!.policy);
    const unfit = await handshakeProblem(policy, { contents, keyType }, text, at);
    if (unfit !== undefined) return { ok: false, problems: [unfit] };
  }
  const dhparams = Object.fromEntries(using.map(({ name }) => [name, text]));
  return { ok: true, renewal: { dhparams }, message: "was renewed", warnings: [] };
}
