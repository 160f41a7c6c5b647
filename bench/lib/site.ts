import { randomBytes } from "node:crypto";
import { closeSync, mkdirSync, openSync, statfsSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { privateKey, selfSignedCertificate } from "../../demo/tlsResources.js";
import { dhParametersPem } from "../../src/render/index.js";
import { ownFolder } from "./children.js";

/** Files that every proxy of a run serves from or is configured with. */
export interface Site {
  /** Configs and logs: on disk, as on a host. */
  readonly folder: string;
  /** Installation of the web application; `media` below it is served. In memory, so that no disk is measured. */
  readonly install: string;
  readonly media: string;
  readonly defaultPage: string;
  readonly tls: { readonly certificate: string; readonly key: string; readonly dhparam: string };
  /** A body to upload, {@link SMALL_UPLOAD_BYTES} long. */
  readonly smallUpload: string;
}

export const GIB = 2 ** 30;
/** Large bodies: that of a full run, and that of a quick one. */
export const FULL_BULK = { name: "1g.bin", bytes: GIB };
export const QUICK_BULK = { name: "256m.bin", bytes: GIB / 4 };
/** Bodies between the smallest and the large one, below {@link bodyName}. */
export const BODY_SIZES = [1, 2 ** 10, 2 ** 15, 2 ** 20, 2 ** 25];
export const bodyName = (bytes: number): string => `${bytes}.bin`;
export const SMALL_UPLOAD_BYTES = 8_000_000;
/** Name that clients ask for: the address, as long as a host has no domain (service 1.3). */
export const HOST = "127.0.0.1";

/** @param bulk the large body that this run needs */
export async function createSite(bulk: { name: string; bytes: number }): Promise<Site> {
  const folder = ownFolder(tmpdir());
  const memory = ownFolder(memoryFolder(bulk.bytes));
  const install = path.join(memory, "install");
  const site: Site = {
    folder,
    install,
    media: path.join(install, "media"),
    defaultPage: path.join(memory, "default"),
    tls: {
      certificate: path.join(folder, "tls/cacert.pem"),
      key: path.join(folder, "tls/privkey.pem"),
      dhparam: path.join(folder, "tls/dhparam2048.pem"),
    },
    smallUpload: path.join(memory, "upload-8m.bin"),
  };
  for (const one of [path.dirname(site.tls.key), site.media, site.defaultPage]) {
    mkdirSync(one, { recursive: true });
  }
  writeFileSync(path.join(site.defaultPage, "index.html"), "<!DOCTYPE html>\n<p>It works.</p>\n");
  writeFileSync(path.join(site.media, "10k.bin"), randomBytes(10_240));
  for (const bytes of BODY_SIZES) fill(path.join(site.media, bodyName(bytes)), bytes);
  fill(path.join(site.media, bulk.name), bulk.bytes);
  fill(site.smallUpload, SMALL_UPLOAD_BYTES);
  await writeTlsFiles(site);
  return site;
}

/** Where files are in memory, if there is room; in containers it may be as small as 64 MiB. */
function memoryFolder(bytes: number): string {
  try {
    const { bavail, bsize } = statfsSync("/dev/shm");
    return bavail * bsize > bytes * 1.5 ? "/dev/shm" : tmpdir();
  } catch {
    return tmpdir();
  }
}

/** A file of real pages: those of a sparse one need not be copied, which would flatter whoever reads them. */
function fill(file: string, bytes: number): void {
  const block = randomBytes(1 << 20);
  const fd = openSync(file, "w");
  for (let left = bytes; left > 0; left -= block.length)
    writeSync(fd, block, 0, Math.min(left, block.length));
  closeSync(fd);
}

async function writeTlsFiles(site: Site): Promise<void> {
  const { private_key_pem: key } = privateKey({ algorithm: "RSA", rsa_bits: 2048 });
  const { cert_pem: certificate } = await selfSignedCertificate({
    private_key_pem: key,
    subject: [{ common_name: HOST }],
    ip_addresses: [HOST],
    validity_period_hours: 24,
    allowed_uses: ["digital_signature", "key_encipherment", "server_auth"],
  });
  writeFileSync(site.tls.certificate, certificate!);
  writeFileSync(site.tls.key, key!, { mode: 0o600 });
  writeFileSync(site.tls.dhparam, dhParametersPem());
}
