import { Fn } from "cdktf";
import type { Construct } from "constructs";
import { renewalPathUnit, renewalServiceUnit, type UnitDocument } from "../../render/index.js";
import { argument, hasTokens } from "../props/tokens.js";
import type { IReverseProxy } from "../proxy/proxyInterfaces.js";
import { proxyBehind } from "../proxy/proxyScope.js";
import { SystemdUnit } from "../host/systemdUnit.js";

/** Watches what something on the host renews of a proxy: certificates, keys, parameters and secrets. */
export class Renewals {
  private watching: SystemdUnit | undefined;
  private readonly credentialFiles = new Set<string>();

  constructor(
    private readonly service: Construct,
    private readonly proxy: IReverseProxy,
  ) {
    const behind = proxyBehind(proxy);
    behind.onTlsFiles(({ renewedOnHost }) => {
      if (renewedOnHost !== undefined) this.watch();
    });
    if (behind.ticketKeysFile !== undefined) this.watch();
    behind.onCredentialFiles((file) => {
      this.credentialFiles.add(file);
      this.watch();
    });
  }

  /** The unit, once there is something to watch. */
  get pathUnit(): SystemdUnit | undefined {
    return this.watching;
  }

  private watch(): void {
    if (this.watching !== undefined) return;
    const { host, paths } = this.proxy;
    const add = (id: string, name: string, unit: () => UnitDocument): SystemdUnit =>
      new SystemdUnit(this.service, id, { host, directory: paths.unitDirectory, name, unit });
    add("RenewalServiceUnit", "portico-certificates.service", renewalServiceUnit);
    this.watching = add("RenewalPathUnit", "portico-certificates.path", () => renewalPathUnit(this.paths));
  }

  /**
   * The files and their directories. A secret of a route that was removed is watched for nothing: without it the unit
   * might have nothing to watch.
   */
  private get paths(): string[] {
    const { usedTlsFiles, ticketKeysFile } = proxyBehind(this.proxy);
    const files = usedTlsFiles.flatMap(([, { renewedOnHost = [] }]) => renewedOnHost);
    if (ticketKeysFile !== undefined) files.push(ticketKeysFile);
    files.push(...this.credentialFiles);
    return [...new Set([...files.map(directoryOf), ...files])];
  }
}

const directoryOf = (path: string): string =>
  hasTokens(path) ? (Fn.dirname(argument(path)) as string) : path.slice(0, path.lastIndexOf("/")) || "/";
