export * from "./constructs/index.js";
export type { DnsRecord, PortForward } from "./model/host.js";
export {
  formatProblem,
  parseConfig,
  parseConfigText,
  type Problem,
  PROBLEM_CODES,
  type ProblemCode,
  ProblemError,
  type ProxyConfig,
  type ProxyConfigInput,
  type Result,
} from "./model/index.js";
