import { isIPv6 } from "node:net";
import { endpoint, ProblemError, type ProxyConfig } from "../../model/index.js";
import { serve } from "../../runtime/supervisor/serve.js";
import { readDocument, type DocumentSource } from "../document.js";
import { mainName } from "../../host/diagnosis/expected/expectedResponses.js";
import { previewCertificates } from "../previewCertificates.js";
import { EXIT, json, type CommandOutput, problemsText } from "../output.js";
import { previewConfig, type PreviewOptions } from "../previewConfig.js";

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
