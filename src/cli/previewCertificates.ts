import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ProxyConfig, withDirectories } from "../model/index.js";

/** Certificates for a preview, and empty directories, in place of those that only the host has. */
export interface PreviewCertificates {
  /** Whether any file is missing here. */
  readonly replaced: boolean;
  /** @param config with the paths of this machine */
  replace(config: ProxyConfig): ProxyConfig;
  remove(): void;
}

type Tls = NonNullable<ProxyConfig["listeners"][number]["tls"]>;

/** @param root directory that the host's files are in */
export async function previewCertificates(config: ProxyConfig, root = "/"): Promise<PreviewCertificates> {
  const isMissing = (file: string | undefined): boolean => file !== undefined && !existsSync(file);
  const lacks = ({ certificate, key }: Tls["certificates"][number]): boolean =>
    isMissing(certificate) || isMissing(key);
  const below = ({ certificate, key }: Tls["certificates"][number]): Tls["certificates"][number] => ({
    certificate: certificate === undefined ? undefined : join(root, certificate),
    key: key === undefined ? undefined : join(root, key),
  });
  const all = config.listeners.flatMap(({ tls }) => (tls === undefined ? [] : [tls, ...tls.certificates]));
  if (!all.some((one) => lacks(below(one))))
    return { replaced: false, replace: (same) => same, remove: () => undefined };

  const { temporaryCertificate } = await import("../runtime/acme/engine.js");
  const names = new Set(config.virtualServers.flatMap(({ serverNames }) => serverNames));
  names.delete("_");
  // Each policy allows RSA keys.
  const pair = await temporaryCertificate(names.size === 0 ? ["localhost"] : [...names], "rsa-2048");
  const folder = mkdtempSync(join(tmpdir(), "portico-preview-"));
  const empty = join(folder, "empty");
  mkdirSync(empty);
  const own = { certificate: join(folder, "certificate.pem"), key: join(folder, "key.pem") };
  writeFileSync(own.certificate, pair.cert, { mode: 0o600 });
  writeFileSync(own.key, pair.key, { mode: 0o600 });
  const replaced = <T extends Tls["certificates"][number]>(one: T): T =>
    lacks(one) ? { ...one, ...own } : one;
  const ofListener = (tls: Tls): Tls => ({
    ...replaced(tls),
    certificates: tls.certificates.map(replaced),
    ...(isMissing(tls.dhparam) ? { dhparam: undefined } : {}),
  });
  return {
    replaced: true,
    replace: (rooted) => ({
      ...rooted,
      listeners: rooted.listeners.map((one) =>
        one.tls === undefined ? one : { ...one, tls: ofListener(one.tls) },
      ),
      virtualServers: rooted.virtualServers.map((server) => ({
        ...server,
        routes: server.routes.map((route) => ({
          ...route,
          action: withDirectories(route.action, (directory) => (isMissing(directory) ? empty : directory)),
        })),
      })),
    }),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
