import type { TestHost } from "../harness/index.js";

/** What changes by itself on a host that runs: clocks, seeds, logs of others. */
const RESTLESS = [
  "/var/log/*tmp",
  "/var/log/wtmp.db",
  "/var/log/lastlog",
  "/var/log/journal",
  "/var/lib/systemd",
  "/var/tmp/systemd-private-*",
  // Written by Debian's timers at midnight.
  "/var/backups",
  "/var/lib/logrotate",
];

/** Every file of a host with its kind, mode, owner, content or target; by path. */
export async function hostTree(host: TestHost): Promise<ReadonlyMap<string, string>> {
  const skip = RESTLESS.map((path) => `-path '${path}'`).join(" -o ");
  const entries = await host.must(`find / -xdev \\( ${skip} \\) -prune -o -printf '%p\\t%y %m %U:%G %l\\n'`);
  // A fifth of what sha256sum takes: it uses the processor's own instructions.
  const hashes = await host.must(
    `find / -xdev \\( ${skip} \\) -prune -o -type f -print0 | xargs -0 openssl sha256 -r`,
    { timeoutSeconds: 120 },
  );
  const hashOf = new Map(
    hashes
      .trimEnd()
      .split("\n")
      .map((line) => [line.slice(66), line.slice(0, 64)]),
  );
  return new Map(
    entries
      .trimEnd()
      .split("\n")
      .map((line) => line.split("\t") as [string, string])
      .map(([path, what]) => [path, `${what} ${hashOf.get(path) ?? ""}`.trimEnd()]),
  );
}

/** What is not as it was, a line each. */
export const differences = (
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): readonly string[] =>
  [...new Set([...before.keys(), ...after.keys()])].flatMap((path) =>
    before.get(path) === after.get(path)
      ? []
      : [`${path}: ${before.get(path) ?? "-"} is ${after.get(path) ?? "-"}`],
  );
