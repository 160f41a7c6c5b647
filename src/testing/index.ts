export { type SynthesizedFile, synthesizedFile, synthesizedFiles } from "./files.js";
export { renderProxyConfig } from "./proxyConfig.js";
export { type Resolution, resolve, type TestRequest } from "./request.js";
