import { type DeployedFile, type Problem } from "../../../model/index.js";
import { refusedProblem } from "../../../runtime/load/files.js";
import { checkForRoot, checkProgram, FileRefused, readTrusted } from "../../../runtime/files/trustedFile.js";

/**
 * Paths of units that systemd itself opens or starts: it reads credentials as root, follows every link, and waits for a
 * FIFO. So such a path must be one that only root can change.
 */

/**
 * Problems of the paths that a unit names.
 *
 * @param apart paths that are examined elsewhere
 */
export async function unitPathProblems(
  unit: string,
  text: string,
  apart: ReadonlySet<string>,
): Promise<Problem[]> {
  const found = pathsOf(text).filter(({ path }) => !apart.has(path));
  const problems = await Promise.all(
    found.map(async ({ directive, path }) => {
      try {
        await (directive === "LoadCredential" ? checkForRoot(path) : checkProgram(path));
      } catch (error) {
        // What is missing is reported by the check of the config, or by systemd.
        if (error instanceof FileRefused) return [refusedProblem(`${unit}: ${directive} (${path})`, error)];
      }
      return [];
    }),
  );
  return problems.flat();
}

/** The same for units that are on the host. */
export async function installedUnitProblems(files: readonly DeployedFile[]): Promise<Problem[]> {
  const units = files.filter(({ role }) => role === "unit");
  const problems = units.map(async ({ path }) => {
    const read = await readTrusted(path).catch(() => undefined);
    return read === undefined ? [] : unitPathProblems(path, read.bytes.toString("utf8"), new Set());
  });
  return (await Promise.all(problems)).flat();
}

/** The paths, each once with its directive. */
export function pathsOf(text: string): readonly { readonly directive: string; readonly path: string }[] {
  const named = [...text.matchAll(/^(LoadCredential|Exec[A-Z]\w*)=(.*)$/gm)].flatMap(
    ([, directive = "", value = ""]) => {
      if (directive === "LoadCredential") return [{ directive, path: value.slice(value.indexOf(":") + 1) }];
      const [, prefix = "", path = ""] = /^([-@:+!|]*)"?([^\s"]+)/.exec(value) ?? [];
      return isOthers(text) && !/[+!]/.test(prefix) ? [] : [{ directive, path }];
    },
  );
  const plain = named.filter(({ path }) => /^\/[^%$\\]*$/.test(path));
  return [...new Map(plain.map((one) => [`${one.directive} ${one.path}`, one])).values()];
}

/** Whether a unit runs as a user of the host, such as the application's: that user may own the programs. */
const isOthers = (text: string): boolean =>
  /^User=(?!root$|0$)./m.test(text) && !/^DynamicUser=(?:yes|true|on|1)$/m.test(text);
