import { dirname } from "node:path";
import type { Module } from "./modules.js";

/** Layer → layers it may import from: data flows one way. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  "src/model": [],
  "src/render": ["src/model"],
  "src/applications": ["src/render", "src/model"],
  "src/constructs": ["src/applications", "src/render", "src/model"],
  "src/kubernetes": ["src/constructs", "src/render", "src/model"],
  "src/runtime": ["src/model"],
  "src/host/asOwner": ["src/runtime", "src/model"],
  "src/host/applicationSettings": ["src/host/asOwner", "src/runtime", "src/render", "src/model"],
  "src/host/diagnosis": [
    "src/host/asOwner",
    "src/host/applicationSettings",
    "src/runtime",
    "src/render",
    "src/model",
  ],
  "src/host/activation": [
    "src/host/asOwner",
    "src/host/diagnosis",
    "src/host/applicationSettings",
    "src/runtime",
    "src/render",
    "src/model",
  ],
  "src/cli": [
    "src/host/asOwner",
    "src/host/activation",
    "src/host/diagnosis",
    "src/host/applicationSettings",
    "src/runtime",
    "src/render",
    "src/model",
    "docs/errors.md",
  ],
  "src/testing": ["src/model", "src/render", "src/constructs"],
  "src/index.ts": ["src/constructs", "src/model"],
  "main.ts": ["src/index.ts"],
  build: ["src", "proof/hosts/breakages.ts", "proof/hosts/deployedThings.ts"],
  demo: ["build", "src"],
  testkit: ["demo", "build", "src"],
  proof: ["testkit", "demo", "build", "src"],
  bench: ["testkit", "demo", "build", "src"],
};

/**
 * Folders of a layer, the lowest first: each may import from those before it. `.` are the layer's own files, and
 * `index.ts` what it shows of itself.
 */
const ORDER: Readonly<Record<string, readonly string[]>> = {
  "src/model": [
    "text",
    "net",
    "schema",
    "host",
    ".",
    "access",
    "actions",
    "config",
    "lateValues.ts",
    "deployment.ts",
    "serving.ts",
    "index.ts",
    "decision.ts",
    "resolution.ts",
    "review",
  ],
  "src/render": [".", "index.ts", "kubernetes"],
  "src/constructs": [
    "packageFile.ts",
    "providers",
    "props",
    "delivery",
    "host",
    "proxy",
    "service",
    ".",
    "application",
    "frontEnd",
    "pair",
    "index.ts",
  ],
  "src/runtime": [
    ".",
    "files",
    "counting",
    "sockets",
    "codec",
    "rates",
    "exchange",
    "rates",
    "dispatch",
    "logIns",
    "tls",
    "load",
    "acme",
    "logs",
    "listen",
    "server",
    "upstream",
    "status",
    "actions",
    "worker",
    "notifications",
    "supervisor",
    "index.ts",
  ],
  "src/runtime/supervisor": ["report", "listeners", "control", "processes", "served", "."],
  "src/host/applicationSettings": [".", "index.ts"],
  "src/host/diagnosis": ["system", "expected", "logs", "replay", ".", "rows"],
  "src/cli": [".", "commands", "program.ts", "main.ts"],
  build: [".", "docs"],
  demo: ["upstreams", "."],
  testkit: [".", "cases", "load"],
  proof: [
    "applicationSettings",
    "diagnosis",
    "activation",
    "asOwner",
    "acme",
    "terraform",
    "balancer",
    "bans",
    "metrics",
    "wire",
    "nginx",
    "transfer",
    "hostile",
    "application",
    "applications",
    "portals",
    "upstreams",
    "conformance",
    "exchanges",
    "bytes",
    "replay",
    "demo",
    "processes",
    "monitoring",
    "quiesces",
    "faults",
    "fuzz",
    "hosts",
    "firewall",
    "kubernetes",
    "nodeVersions",
    "package",
    "restarts",
    "slowClients",
    "guessing",
    "soak",
    "servers",
    "status",
    ".",
  ],
  bench: ["lib", "helpers", "proxies", "work", "."],
};

/** Imports that go up, or between layers that are none of each other's business: `FROM imports TO`. */
export function wrongImports(modules: readonly Module[]): string[] {
  return modules.flatMap(({ path, imports }) =>
    imports.filter((to) => !mayImport(path, to)).map((to) => `${path} imports ${to}`),
  );
}

function mayImport(from: string, to: string): boolean {
  const [layer, target] = [layerOf(from), layerOf(to)];
  if (layer !== target) {
    const allowed = MAY_IMPORT[layer] ?? [];
    return allowed.some((one) => to === one || to.startsWith(`${one}/`));
  }
  const folders = Object.keys(ORDER).filter((one) => [from, to].every((path) => path.startsWith(`${one}/`)));
  const folder = folders.sort((a, b) => b.length - a.length)[0];
  if (folder === undefined) return dirname(from) === dirname(to);
  const order = ORDER[folder]!;
  const places = [from, to].map((path) => order.indexOf(folderOf(path, folder, order)));
  return !places.includes(-1) && places[1]! <= places[0]!;
}

/** The longest layer that a path belongs to. */
function layerOf(path: string): string {
  const layers = Object.keys(MAY_IMPORT).filter((layer) => path === layer || path.startsWith(`${layer}/`));
  return layers.sort((a, b) => b.length - a.length)[0] ?? path;
}

function folderOf(path: string, folder: string, order: readonly string[]): string {
  const [first = "", second] = path.slice(folder.length + 1).split("/");
  if (second !== undefined) return first;
  return order.includes(first) ? first : ".";
}

/** Modules that import each other, however many lie between: one line a circle. */
export function circles(modules: readonly Module[]): string[] {
  const graph = new Map(modules.map(({ path, imports }) => [path, imports]));
  const found: string[] = [];
  const done = new Set<string>();
  const visit = (path: string, way: readonly string[]): void => {
    const at = way.indexOf(path);
    if (at !== -1) return void found.push([...way.slice(at), path].join(" -> "));
    if (done.has(path)) return;
    for (const next of graph.get(path) ?? []) visit(next, [...way, path]);
    done.add(path);
  };
  for (const path of graph.keys()) visit(path, []);
  return found;
}
