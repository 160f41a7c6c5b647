export { type LoadedConfig, loadConfig, type LoadOptions } from "./load.js";
export { serve, type ServeOptions } from "./serve.js";
export type { TlsFiles } from "./tlsFiles.js";
export { VERSION } from "./version.js";
export { runWorker } from "./worker.js";
