/** Parts of `src` that are counted by themselves; the first that fits counts. */
export const AREAS: readonly (readonly [name: string, path: RegExp])[] = [
  ["model", /^src\/model\//],
  ["http1", /^src\/runtime\/http1\//],
  ["http2", /^src\/runtime\/http2\//],
  ["upstream and actions", /^src\/runtime\/(?:upstream|actions)\//],
  ["rest of the runtime", /^src\/runtime\//],
  ["render", /^src\/render\//],
  ["constructs and testing", /^src\/(?:constructs|kubernetes|testing)\/|^src\/index\.ts$/],
  ["settings", /^src\/(?:applicationSettings|asOwner)\//],
  ["activation and diagnosis", /^src\/(?:activation|diagnosis)\//],
  ["command line", /^src\/cli\//],
];

export const areaOf = (file: string): string => AREAS.find(([, path]) => path.test(file))![0];
