import { isIPv6 } from "node:net";
import { endpoint, ProblemError, type ProxyConfig, withDirectories } from "../../model/index.js";
import { serve } from "../../runtime/supervisor/serve.js";
import { readDocument, type DocumentSource } from "../document.js";
import { mainName } from "../../host/diagnosis/expected/expectedResponses.js";
import { EXIT, json, type CommandOutput, problemsText } from "../output.js";
import { previewConfig, type PreviewOptions } from "../previewConfig.js";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** `portico preview`: serves the config on loopback until it is stopped. */
export async function preview(
  source: DocumentSource,
  options: PreviewOptions & { readonly json?: boolean },
  output: CommandOutput,
): Promise<number> {
  const document = await readDocument(source.file);
  const moved = document.ok ? previewConfig(document.value, options) : document;
  if (!document.ok || !moved.ok) {
    const problems = moved.ok ? [] : moved.problems;
    if (options.json === true) output.out(json({ file: source.file, ok: false, problems }));
    else output.err(problemsText(source.file, problems));
    return EXIT.failed;
  }
  const certificates = await previewCertificates(document.value, source.root);
  if (certificates.replaced)
    output.err(
      "warning: certificates that are not on this machine are replaced by self-signed ones, and missing directories by an empty one\n",
    );
  const serving = serve({
    ...source,
    // A reload reads the file again, so its ports have to be moved again.
    adjust: (config) => {
      const again = previewConfig(certificates.replace(config), options);
      if (!again.ok) throw new ProblemError(again.problems);
      return again.value;
    },
    logToStderr: true,
    onReady: () => {
      const ready = readyPreview(source.file, document.value, moved.value);
      output.out(options.json === true ? json(ready) : readyText(ready));
    },
  });
  return serving.finally(() => certificates.remove());
}

/** The addresses of a preview. */
export function readyPreview(file: string, original: ProxyConfig, moved: ProxyConfig) {
  const listeners = moved.listeners.map(({ name, address: host, port, protocol }, i) => ({
    name,
    url: `${protocol}://${endpoint({ host, port })}/`,
    insteadOf: { address: original.listeners[i]!.address, port: original.listeners[i]!.port },
  }));
  return { file, ok: true, listeners, request: namedRequest(moved) };
}

export function readyText({ file, listeners, request }: ReturnType<typeof readyPreview>): string {
  const addresses = listeners.map(
    ({ url, insteadOf: { address, port } }) => `  ${url.padEnd(32)} instead of port ${port} of ${address}\n`,
  );
  const hint = request === undefined ? "" : `Request it by name: ${request}\n`;
  return `portico preview of ${file}\n${addresses.join("")}${hint}Stop it with Ctrl-C.\n`;
}

/** On loopback the server name has to be given too, unless the config has loopback as a server name. */
function namedRequest(config: ProxyConfig): string | undefined {
  const name = mainName(config);
  const onIPv4 = config.listeners.filter((l) => !isIPv6(l.address));
  // Over http the name may lead nowhere but to https.
  const { address, port, protocol } = onIPv4.find((l) => l.protocol === "https") ?? onIPv4[0]!;
  if (name === undefined || name === address) return undefined;
  return `curl -k --resolve ${name}:${port}:${address} ${protocol}://${name}:${port}/`;
}

/** Certificates for a preview, and empty directories, in place of those that only the host has. */
interface PreviewCertificates {
  /** Whether any file is missing here. */
  readonly replaced: boolean;
  /** @param config with the paths of this machine */
  replace(config: ProxyConfig): ProxyConfig;
  remove(): void;
}

type Tls = NonNullable<ProxyConfig["listeners"][number]["tls"]>;

/** @param root directory that the host's files are in */
async function previewCertificates(config: ProxyConfig, root = "/"): Promise<PreviewCertificates> {
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

  const { temporaryCertificate } = await import("../../runtime/acme/engine.js");
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
