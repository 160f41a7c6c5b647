import { isIPv6 } from "node:net";
import { endpoint, ProblemError, type ProxyConfig } from "../model/index.js";
import { serve } from "../runtime/supervisor/serve.js";
import { readDocument, type Source } from "./document.js";
import { mainName } from "../diagnosis/expectedResponses.js";
import { EXIT, type Output, problemsText } from "./output.js";
import { previewConfig, type PreviewOptions } from "./previewConfig.js";

/** `portico preview`: serves the config on loopback until it is stopped. */
export async function preview(source: Source, options: PreviewOptions, output: Output): Promise<number> {
  const document = await readDocument(source.file);
  const moved = document.ok ? previewConfig(document.value, options) : document;
  if (!document.ok || !moved.ok) {
    output.err(problemsText(source.file, moved.ok ? [] : moved.problems));
    return EXIT.failed;
  }
  return serve({
    ...source,
    // A reload reads the file again, so its ports have to be moved again.
    adjust: (config) => {
      const again = previewConfig(config, options);
      if (!again.ok) throw new ProblemError(again.problems);
      return again.value;
    },
    logToStderr: true,
    onReady: () => output.out(readyText(source.file, document.value, moved.value)),
  });
}

/** Where a preview serves what. */
export function readyText(file: string, original: ProxyConfig, moved: ProxyConfig): string {
  const addresses = moved.listeners.map((listener, i) => {
    const { address, port, protocol } = listener;
    const url = `${protocol}://${endpoint({ host: address, port })}/`;
    return `  ${url.padEnd(32)} instead of port ${original.listeners[i]!.port} of ${original.listeners[i]!.address}\n`;
  });
  return `portico preview of ${file}\n${addresses.join("")}${nameHint(moved)}Stop it with Ctrl-C.\n`;
}

/** On loopback the server name has to be given too, unless the config has loopback as a server name. */
function nameHint(config: ProxyConfig): string {
  const name = mainName(config);
  const onIPv4 = config.listeners.filter((l) => !isIPv6(l.address));
  // Over http the name may lead nowhere but to https.
  const { address, port, protocol } = onIPv4.find((l) => l.protocol === "https") ?? onIPv4[0]!;
  if (name === undefined || name === address) return "";
  return `Ask for it by name: curl -k --resolve ${name}:${port}:${address} ${protocol}://${name}:${port}/\n`;
}
