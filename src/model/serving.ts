/**
 * The model without its parser: everything that a serving process needs. A worker gets its config already parsed, and
 * the parser's library takes as long to load as everything else in a worker.
 */
export * from "./actions/contentCoding.js";
export * from "./actions/fieldFates.js";
export * from "./firstOfName.js";
export * from "./actions/forwarding.js";
export * from "./actions/location.js";
export * from "./actions/slashRedirect.js";
export * from "./actions/staticPath.js";
export type * from "./actions/table.js";
export * from "./address.js";
export * from "./authority.js";
export * from "./blanks.js";
export * from "./certificateName.js";
export * from "./config/responseFields.js";
export type * from "./config/certificates.js";
export type * from "./config/config.js";
export type { DnsApiConfig, DnsApiName, DnsProofsConfig, DnsProofsOf } from "./config/dns.js";
export type { ChallengeType } from "./config/tls.js";
export * from "./config/namedFiles.js";
export * from "./errorPage.js";
export type { ErrorToken } from "./errorTokens.js";
export { forwardedClient } from "./forwardedClient.js";
export * from "./hopByHop.js";
export { CUT_MARK, onePiece } from "./onePiece.js";
export * from "./problem.js";
export * from "./refusals.js";
export { Router, RouteTable, isWrite } from "./config/router.js";
export * from "./config/windowsDrives.js";
export * from "./serverName.js";
export * from "./config/sites.js";
export * from "./target.js";
export * from "./tlsPolicy.js";
export * from "./sessionHash.js";
export * from "./config/upstreamServers.js";
export * from "./workerMemory.js";
