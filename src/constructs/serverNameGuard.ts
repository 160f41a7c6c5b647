import { Aspects, Fn } from "cdktf";
import type { ProxyConfigInput } from "../model/index.js";
import type { HostFile } from "./hostFile.js";
import { hasTokens } from "./tokens.js";

/**
 * A server name that another resource knows only at apply cannot be checked before. Then Terraform checks it, before
 * it writes a config that the host would refuse.
 */
export function guardServerNames(file: HostFile, config: () => ProxyConfigInput): void {
  Aspects.of(file).add({
    visit: (node) => {
      if (node !== file) return;
      const names = config().virtualServers.flatMap((server) => server.serverNames);
      const unknown = [...new Set(names.filter(hasTokens))];
      if (unknown.length === 0) return;
      const conditions = unknown.map((name) => ({
        condition: Fn.can(Fn.regex("^[a-z0-9_.:-]+$", name)),
        error_message: "A server name is a host name or an address, in lower case and without a port.",
      }));
      file.resource.addOverride("lifecycle.precondition", conditions);
    },
  });
}
