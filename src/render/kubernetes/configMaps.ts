import { CONTAINER_PATHS } from "../hostPaths.js";
import { type FrontEndInput, type Manifest, metadata, shortHash } from "./objects.js";

/** A file of a ConfigMap, and where the pods see it. */
export interface ConfigFile {
  readonly key: string;
  readonly path: string;
  readonly content: string;
}

/** The config and the small files, each under its own key. */
export function configFiles({ config, files }: FrontEndInput): readonly ConfigFile[] {
  const all = [[CONTAINER_PATHS.config, config] as const, ...files];
  const names = all.map(([path]) => path.slice(path.lastIndexOf("/") + 1));
  return all.map(([path, content], i) => {
    const name = names[i]!;
    return { key: names.indexOf(name) === i ? name : `${i}-${name}`, path, content };
  });
}

/**
 * The config under the hash of its content: pods of two configs can run side by side, and a pod never sees a config that
 * is not its own. The hash is in the pods' template as well, so that a change rolls out.
 */
export function configMap(input: FrontEndInput): Manifest {
  const data = Object.fromEntries(configFiles(input).map(({ key, content }) => [key, content]));
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: metadata(input, `${input.name}-config-${shortHash(data)}`),
    immutable: true,
    data,
  };
}

export const RUNTIME_KEY = "portico.mjs.gz";

/** The runtime, for pods whose image has none; compressed, since a ConfigMap holds at most 1 MiB. */
export function runtimeConfigMap(input: FrontEndInput): Manifest | undefined {
  if (input.runtime === undefined) return undefined;
  const binaryData = { [RUNTIME_KEY]: input.runtime };
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: metadata(input, `${input.name}-runtime-${shortHash(binaryData)}`),
    immutable: true,
    binaryData,
  };
}
