import { createHash } from "node:crypto";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import {
  activate,
  type Activated,
  type ActivationOptions,
  deactivate,
  type Deactivated,
} from "../../src/host/activation/index.js";
import { FILE_SYNC_ROWS } from "../../src/applications/index.js";
import type { DeploymentInput, FileRole, Problem } from "../../src/model/index.js";
import { issue, type Issued } from "../../testkit/certificates.js";
import { siteConfig } from "../../testkit/siteConfig.js";

export interface SiteFile {
  readonly content: string;
  readonly mode?: "0600" | "0640" | "0644" | "0755";
  readonly role: FileRole;
}

export type SiteFiles = Readonly<Record<string, SiteFile>>;

export const PROXY = { service: "portico.service", socket: "portico.socket" };
export const KEY = "/etc/portico/tls/privkey.pem";
export const CONFIG = "/etc/portico/portico.json";

type Pair = Pick<Issued, "key" | "cert">;

let tls: Promise<Pair> | undefined;

const newPair = (): Promise<Pair> => issue({ names: ["files.example.org", "127.0.0.1"], to: 365 });

/** Files of a small deployment in TLS mode; `version` makes them differ from those of another. */
export async function siteFiles(version: string, more: SiteFiles = {}): Promise<SiteFiles> {
  tls ??= newPair();
  const { key, cert } = await tls;
  const config = { ...siteConfig({ mode: "tls" }), timeouts: { keepAliveMs: 1000 + version.length } };
  return {
    [CONFIG]: { role: "config", content: `${JSON.stringify(config)}\n` },
    [KEY]: { role: "tls", mode: "0600", content: key },
    "/etc/portico/tls/cacert.pem": { role: "tls", content: cert },
    "/usr/lib/portico/portico.mjs": {
      role: "runtime",
      mode: "0755",
      content: `// runtime ${version}\nif (process.argv[2] === "--version") console.log("portico ${version}");\n`,
    },
    "/usr/share/portico/default/index.html": { role: "page", content: `<title>${version}</title>\n` },
    ...more,
  };
}

/** Another key with its certificate. */
export async function otherPair(): Promise<SiteFiles> {
  const { key, cert } = await newPair();
  return {
    [KEY]: { role: "tls", mode: "0600", content: key },
    "/etc/portico/tls/cacert.pem": { role: "tls", content: cert },
  };
}

/**
 * Where sites are: in memory, on Linux. They are made and removed by the hundred, which takes less CPU there than on a
 * disk.
 */
export const SITES = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

/** A folder that stands for a host, and what a delivery uploads to it. */
export class Site {
  readonly root: string;
  readonly incoming: string;
  readonly lines: string[] = [];

  constructor(parent = SITES) {
    this.root = mkdtempSync(path.join(parent, "portico activation "));
    this.incoming = this.at("/var/lib/portico/incoming/one");
    mkdirSync(this.at("/opt/sync/media"), { recursive: true });
    this.makeIncoming();
  }

  private makeIncoming(): void {
    mkdirSync(this.incoming, { recursive: true, mode: 0o700 });
  }

  at(file: string): string {
    return path.join(this.root, file);
  }

  write(file: string, content: string, mode = 0o644): void {
    mkdirSync(path.dirname(this.at(file)), { recursive: true });
    writeFileSync(this.at(file), content, { mode });
  }

  read(file: string): string {
    return readFileSync(this.at(file), "utf8");
  }

  /** Uploads a deployment: the document, and the contents. */
  deliver(files: SiteFiles, more: Partial<DeploymentInput> = {}): DeploymentInput {
    const deployment = document(files, more);
    this.makeIncoming();
    for (const { content } of Object.values(files)) {
      writeFileSync(path.join(this.incoming, sha256(content)), content, { mode: 0o600 });
    }
    this.deliverDocument(deployment);
    return deployment;
  }

  deliverDocument(deployment: DeploymentInput): void {
    this.makeIncoming();
    writeFileSync(path.join(this.incoming, "deployment.json"), JSON.stringify(deployment));
  }

  activate(more: Partial<ActivationOptions> = {}): Promise<Activated> {
    const { root, incoming } = this;
    const signal = new AbortController().signal;
    const report = (line: string): void => void this.lines.push(line);
    return activate({ root, incoming, dryRun: false, lockSeconds: 10, signal, report, ...more });
  }

  /** What could not be done; undefined if nothing was there. */
  async deactivate(purge = false): Promise<readonly Problem[] | undefined> {
    const { removed, problems } = await this.deactivateAs(undefined, purge);
    return removed === "nothing" ? undefined : problems;
  }

  deactivateAs(identity: string | undefined, purge = false): Promise<Deactivated> {
    const report = (line: string): void => void this.lines.push(line);
    return deactivate({ root: this.root, lockSeconds: 10, report, purge, ...(identity && { identity }) });
  }

  /** Every file, link and directory of the host but the store: `0644 hash`, `-> target`, `dir`. */
  snapshot(): Record<string, string> {
    return Object.fromEntries(walk(this.root).map((name) => [`/${name}`, describe(this.at(name))]));
  }

  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}

export function document(files: SiteFiles, more: Partial<DeploymentInput> = {}): DeploymentInput {
  return {
    version: 1,
    config: CONFIG,
    files: Object.keys(files)
      .sort()
      .map((file) => {
        const { content, mode = "0644", role } = files[file]!;
        return { path: file, mode, sha256: sha256(content), role };
      }),
    services: { proxy: PROXY },
    rows: FILE_SYNC_ROWS,
    ...more,
  };
}

export function sha256(content: string | Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}

function walk(root: string, below = ""): string[] {
  return readdirSync(path.join(root, below), { withFileTypes: true }).flatMap((entry) => {
    const name = path.posix.join(below, entry.name);
    if (name === "var/lib/portico") return [];
    return entry.isDirectory() ? [name, ...walk(root, name)] : [name];
  });
}

function describe(file: string): string {
  const found = lstatSync(file);
  if (found.isDirectory()) return "dir";
  if (found.isSymbolicLink()) return `-> ${readlinkSync(file)}`;
  const mode = (found.mode & 0o7777).toString(8).padStart(4, "0");
  return `${mode} ${sha256(readFileSync(file)).slice(0, 12)}`;
}

/** Names of the blobs that a site's store holds. */
export function blobsOf(site: Site): string[] {
  const folder = site.at("/var/lib/portico/deployment/blobs");
  return existsSync(folder) ? readdirSync(folder).sort() : [];
}
