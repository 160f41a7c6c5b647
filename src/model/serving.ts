/**
 * The model without its parser: everything that a serving process needs. A worker gets its config already parsed, and
 * the parser's library takes as long to load as everything else in a worker.
 */
export * from "./actions/contentCoding.js";
export * from "./actions/fieldFates.js";
export * from "./text/firstOfName.js";
export * from "./actions/forwarding.js";
export * from "./actions/location.js";
export * from "./actions/slashRedirect.js";
export * from "./actions/staticPath.js";
export type * from "./actions/table.js";
export * from "./access/addressList.js";
export * from "./access/basicCredentials.js";
export * from "./access/passwordHash.js";
export * from "./access/usersFile.js";
export { AddressSet, type PackedAddresses, withinRanges } from "./access/addressSet.js";
export * from "./config/accessGuard.js";
export * from "./config/accessJudge.js";
export type { LogInConfig, PasswordGuardConfig } from "./config/guardChecks.js";
export * from "./config/logInRules.js";
export * from "./config/verifiedUser.js";
export * from "./net/address.js";
export * from "./net/authority.js";
export * from "./text/blanks.js";
export * from "./net/certificateName.js";
export * from "./config/responseFields.js";
export type * from "./config/certificates.js";
export type * from "./config/config.js";
export type { DnsApiConfig, DnsApiName, DnsProofsConfig, DnsProofsOf } from "./config/dns.js";
export type { ChallengeType } from "./config/tls.js";
export * from "./config/namedFiles.js";
export * from "./net/errorPage.js";
export type { ErrorToken } from "./net/errorTokens.js";
export { forwardedClient } from "./net/forwardedClient.js";
export * from "./net/hopByHop.js";
export { CUT_MARK, onePiece } from "./text/onePiece.js";
export * from "./text/problem.js";
export * from "./refusals.js";
export { burstOf, clientPrefix, type RateLimitConfig } from "./config/rateChecks.js";
export { Router, RouteTable, isWrite } from "./config/router.js";
export * from "./config/windowsDrives.js";
export * from "./net/serverName.js";
export * from "./config/sites.js";
export * from "./net/target.js";
export * from "./net/tlsPolicy.js";
export * from "./net/sessionHash.js";
export * from "./config/upstreamServers.js";
export * from "./host/workerMemory.js";
