import { spawnSync } from "node:child_process";
import { cpus, release, totalmem } from "node:os";
import type { ProxyKind } from "./proxy.js";

/** Where results come from. */
export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly kernel: string;
  readonly node: string;
  readonly openssl: string;
  readonly versions: Readonly<Record<string, string>>;
}

/** @param node the binary that runs Portico */
export function describeMachine(kinds: readonly ProxyKind[], node: string): Machine {
  const versionOf = (what: string): string =>
    spawnSync(node, ["-p", `process.versions.${what}`], { encoding: "utf8" }).stdout.trim();
  const tools = { wrk: ["-v"], h2load: ["--version"], curl: ["--version"] };
  const versions = Object.entries(tools).map(([tool, args]) => {
    const { stdout, stderr } = spawnSync(tool, args, { encoding: "utf8" });
    return [tool, /\d+\.\d+(?:\.\d+)?/.exec(`${stdout}${stderr}`)?.[0] ?? "?"];
  });
  return {
    cpu: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: versionOf("node"),
    openssl: versionOf("openssl"),
    versions: {
      ...Object.fromEntries(kinds.map((kind) => [kind.name, kind.version() ?? "not installed"])),
      ...Object.fromEntries(versions),
    },
  };
}
