export { type SynthesizedFile, synthesizedFile, synthesizedFiles } from "./files.js";
export { renderProxyConfig } from "./proxyConfig.js";
export { renderGraph, renderRoutes } from "./review.js";
export type { AccessRefusal } from "../model/config/accessJudge.js";
export type { ServerChance } from "../model/config/serverChances.js";
export type { ResolutionOutcome, ResolutionMatch, Resolution, TestRequest } from "../model/resolution.js";
export { resolve, resolveAs } from "./request.js";
