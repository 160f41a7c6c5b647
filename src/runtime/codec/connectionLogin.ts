/**
 * Log-ins that belong to a connection: after NTLM or Negotiate (RFC 4559) an upstream takes every further request on the
 * connection for one of the same user, whatever fields the request has.
 */

/** The schemes, and those that Microsoft's servers offer for the same: WinRM has Kerberos and CredSSP. */
const LOGS_IN = /(?:^|,)\s*(?:ntlm|negotiate|nego2|kerberos|credssp)(?![\w-])/i;
const OFFERS = /(?:^|[\s,])(?:ntlm|negotiate|nego2|kerberos|credssp)(?![\w-])/i;

/** Whether the value of `Authorization` is part of such a log-in. */
export const logsInConnection = (authorization: string): boolean => LOGS_IN.test(authorization);

/**
 * Whether the value of `WWW-Authenticate` or `Proxy-Authenticate` offers or continues one. A word in a realm counts too: that
 * costs a client its share of the pool, and no more.
 */
export const offersConnectionLogin = (authenticate: string): boolean => OFFERS.test(authenticate);

/** Whether the value of `Persistent-Auth` (IIS) says that the connection is logged in. */
export const isLoggedIn = (persistentAuth: string): boolean => persistentAuth.toLowerCase() !== "false";
