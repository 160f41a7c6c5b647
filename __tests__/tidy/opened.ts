import ts from "typescript";
import { parsed } from "./parsed.js";

/**
 * Calls of Node's functions that open a file by its path for reading. Processes with secrets open the files that others
 * name by `src/runtime/files/trustedFile.ts` alone, which judges the path.
 */
const OPENING = /^(?:open|openSync|readFile|readFileSync|createReadStream|copyFile|copyFileSync|cp|cpSync)$/;

/** The names of the functions, wherever code calls them with a path that is not the kernel's, or hands them on. */
export function filesOpened(text: string): string[] {
  const found: string[] = [];
  const ofFs = importedFromFs(text);
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node)) {
      const { expression, arguments: args } = node;
      const name =
        ts.isIdentifier(expression) && ofFs.has(expression.text) ? expression.text : memberOf(expression);
      if (name !== undefined && OPENING.test(name) && !KERNELS.test(args[0]?.getText() ?? ""))
        found.push(name);
      const made = name === undefined && args[0] !== undefined ? memberOf(args[0]) : undefined;
      if (made !== undefined && OPENING.test(made)) found.push(made);
    }
    ts.forEachChild(node, visit);
  };
  const memberOf = (node: ts.Expression): string | undefined => {
    if (!ts.isPropertyAccessExpression(node)) return undefined;
    const object = node.expression;
    const root = ts.isPropertyAccessExpression(object) ? object.expression : object;
    return ts.isIdentifier(root) && ofFs.has(root.text) ? node.name.text : undefined;
  };
  visit(parsed(text));
  return found;
}

/** Paths that no user can change. */
const KERNELS = /^["'`](?:\/proc\/|\/etc\/machine-id["'`]|\/dev\/null["'`])/;

function importedFromFs(text: string): Set<string> {
  const names = new Set<string>();
  for (const statement of parsed(text).statements) {
    if (!ts.isImportDeclaration(statement)) continue;
    const from = (statement.moduleSpecifier as ts.StringLiteral).text;
    if (from !== "node:fs" && from !== "node:fs/promises") continue;
    const { name, namedBindings } = statement.importClause ?? {};
    if (name !== undefined) names.add(name.text);
    if (namedBindings === undefined) continue;
    if (ts.isNamespaceImport(namedBindings)) names.add(namedBindings.name.text);
    else for (const element of namedBindings.elements) names.add(element.name.text);
  }
  return names;
}

/** Where processes with secrets run. */
export const WITH_SECRETS = /^src\/(?:host|cli|runtime)\//;

/** The only other places that open a file by its path, and why they may. */
export const OPENED_ELSEWHERE: Readonly<Record<string, string>> = {
  "src/runtime/files/trustedFile.ts": "the rule itself",
  "src/runtime/files/openToOthers.ts": "reads pages that are sent to clients, if others may read them",
  "src/runtime/actions/fileLookup.ts": "opens files that are sent to clients, if others may read them",
  "src/runtime/load/credentialSet.ts": "writes into a directory that it has found to be root's alone",
  "src/runtime/files/durable.ts": "makes files that do not exist, and syncs them",
  "src/runtime/logs/logFile.ts": "makes a missing log, where the rule has resolved its path",
  "src/runtime/supervisor/master.ts": "hashes the program that it runs",
  "src/runtime/supervisor/report/cgroup.ts": "reads files of the kernel below /sys and /proc",
  "src/runtime/sockets/node/listeningSockets.ts": "reads files of the kernel below /proc",
  "src/host/asOwner/ownerFile.ts": "runs with the rights of the user whose files it opens",
  "src/host/asOwner/modes.ts": "runs with the rights of the user whose files it opens",
  "src/host/diagnosis/logs/accessLogFile.ts":
    "reads logs: without waiting, and behind no link where an activation does",
  "src/host/diagnosis/system/legacyRules.ts": "procfs",
  "src/host/diagnosis/logs/logFiles.ts": "reads logs: without waiting",
  "src/host/diagnosis/logState.ts": "reads files of the kernel below /proc",
  "src/host/diagnosis/expected/emptiness.ts": "reads /etc/fstab and files of the kernel below /proc",
  "src/host/diagnosis/defaultRoutes.ts": "reads files of the kernel below /proc",
  "src/host/activation/unitDrift.ts": "reads files of the kernel below /proc and /sys",
  "src/host/applicationSettings/databaseOverrides.ts": "makes a file in a directory that it has made",
  "src/host/activation/delivered.ts": "reads uploads, and knows their hashes",
  "src/host/activation/detached.ts": "keeps its own record in the store, which only root can enter",
  "src/host/activation/durableFiles.ts": "writes deployed files, where preconditions.ts allows it",
  "src/host/activation/fileState.ts":
    "hashes deployed files and uploads: without waiting, and shows no content",
  "src/host/activation/logs.ts": "the store, and a file below /etc that only root can change",
  "src/host/activation/lock.ts": "locks a file of the store, which only root can enter",
  "src/host/activation/stagedCheck.ts": "copies uploads, whose hashes are known",
  "src/host/activation/store.ts": "reads the store, which only root can enter",
};
