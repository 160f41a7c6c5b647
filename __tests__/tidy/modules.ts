import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import ts from "typescript";
import { parsed } from "./parsed.js";

export const ROOT = join(__dirname, "../..");

/** A module of this repository, by its path from the root. */
export interface Module {
  readonly path: string;
  /** Paths of the modules that it imports, types alone included. */
  readonly imports: readonly string[];
  /** Packages and modules of Node that it imports. */
  readonly packages: readonly string[];
}

/** Every TypeScript file below a folder. */
export function modulesBelow(folder: string): Module[] {
  return filesBelow(join(ROOT, folder)).map(moduleOf);
}

export function moduleOf(file: string): Module {
  const specifiers = ts.preProcessFile(readFileSync(file, "utf8")).importedFiles.map((f) => f.fileName);
  return {
    path: nameOf(file),
    imports: specifiers.filter(isOurs).map((specifier) => nameOf(target(file, specifier))),
    packages: specifiers.filter((specifier) => !isOurs(specifier)),
  };
}

export const nameOf = (path: string): string => relative(ROOT, path);

const isOurs = (specifier: string): boolean => specifier.startsWith(".");

const target = (file: string, specifier: string): string =>
  resolve(dirname(file), specifier).replace(/\.js(?:\?text)?$/, ".ts");

function filesBelow(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    if (name === "node_modules") return [];
    return statSync(path).isDirectory() ? filesBelow(path) : path.endsWith(".ts") ? [path] : [];
  });
}

/** All that importing a module loads at once; `node:http` counts as a package, for the time it takes. */
export function loadedFrom(entry: string): { files: string[]; packages: string[] } {
  const files = new Set<string>();
  const modules = new Set<string>();
  for (const next = [join(ROOT, entry)]; next.length > 0;) {
    const path = next.pop()!;
    if (files.has(path)) continue;
    files.add(path);
    for (const specifier of loadedBy(path)) {
      if (isOurs(specifier)) next.push(target(path, specifier));
      else modules.add(specifier);
    }
  }
  const packages = [...modules].filter((module) => !/^node:(?!http)/.test(module)).sort();
  return { files: [...files].map(nameOf), packages };
}

/** Imports that are there at run time: those of types alone are not. */
function loadedBy(path: string): string[] {
  const source = parsed(readFileSync(path, "utf8"));
  return source.statements.flatMap((statement) => {
    if (!ts.isImportDeclaration(statement) && !ts.isExportDeclaration(statement)) return [];
    const clause = ts.isImportDeclaration(statement) ? statement.importClause : statement;
    const named = ts.isImportDeclaration(statement)
      ? statement.importClause?.name === undefined && statement.importClause?.namedBindings
      : statement.exportClause;
    const typesOnly =
      !!named &&
      (ts.isNamedImports(named) || ts.isNamedExports(named)) &&
      (named.elements as readonly { isTypeOnly: boolean }[]).every(({ isTypeOnly }) => isTypeOnly);
    if (statement.moduleSpecifier === undefined || clause?.isTypeOnly === true || typesOnly) return [];
    return [(statement.moduleSpecifier as ts.StringLiteral).text];
  });
}
