export * from "./constructs/index.js";
export type { DeepReadonly } from "./model/schema/inferred.js";
export type { DeploymentInput, FileMode, FileRole } from "./model/deployment.js";
export type { DhcpRange, DnsRecord, HostAddresses, PortForward } from "./model/host/host.js";
export type { KeyType } from "./model/net/tlsPolicy.js";
export type {
  ActionInput,
  DeploymentRow,
  ExpectationInput,
  RouteInput,
  SettingsFile,
  Tree,
  UpstreamInput,
} from "./model/index.js";
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
