export { type SynthesizedFile, synthesizedFile, synthesizedFiles } from "./files.js";
export { renderProxyConfig } from "./proxyConfig.js";
export type { Resolution, TestRequest } from "../model/resolution.js";
export { resolve } from "./request.js";
