/** What is known of one way in which a request fails. */
interface TokenFacts {
  /** What happened, as a sentence without a full stop. */
  readonly says: string;
  /** What to do about it, or where to look first. */
  readonly fix: string;
}

/**
 * Ways in which a request fails, by the names of RFC 9209, 2.3. The list has those that Portico tells apart, and one that
 * the RFC does not need, because nobody is left who could be told: `client_gone`.
 *
 * A file that is missing, forbidden or unchanged is no failure of a proxy, and no response of an upstream is, whatever its
 * status: those have no token.
 */
export const ERROR_TOKENS = {
  dns_timeout: {
    says: "no DNS server said within `connectTimeoutMs` which address the upstream's name has",
    fix: "look at /etc/resolv.conf and its servers, or give the upstream's address in its `url`",
  },
  dns_error: {
    says: "the upstream's name has no address",
    fix: "correct the name in the upstream's `url`, or its DNS record: `getent ahosts NAME` has to know it",
  },
  destination_not_found: {
    says: "no route of the virtual server matches the path",
    fix: "add a route, or ask for another path; `portico resolve URL` shows what a request leads to",
  },
  destination_unavailable: {
    says: "no server of the upstream may get requests: each is down or drained",
    fix: "start the servers again, or end their drain; `portico upstreams` shows their states",
  },
  destination_ip_unroutable: {
    says: "this host has no route to the upstream's address",
    fix: "correct the address in the upstream's `url`, or the routes of this host: `ip route get ADDRESS`",
  },
  connection_refused: {
    says: "nothing listens at the upstream's address",
    fix: "start the service, or correct port or path in the upstream's `url`",
  },
  connection_terminated: {
    says: "the upstream closed the connection before it answered",
    fix: "look at the upstream's own log: it crashed, restarted, or closes connections that Portico keeps (`idleTimeoutMs`)",
  },
  connection_timeout: {
    says: "no connection to the upstream was made within `connectTimeoutMs`",
    fix: "look whether the upstream's host is up and its firewall lets this host in",
  },
  connection_read_timeout: {
    says: "the upstream stopped in the middle of its response for longer than `readTimeoutMs`",
    fix: "look at the upstream's own log; give it a longer `readTimeoutMs` if such a pause is normal for it",
  },
  connection_write_timeout: {
    says: "the upstream took nothing of the request for longer than `sendTimeoutMs`",
    fix: "look at the upstream: it hangs, or stores uploads slowly; then give it a longer `sendTimeoutMs`",
  },
  connection_limit_reached: {
    says: "all connections to the upstream that the request could have had were in use",
    fix: "find out what keeps the upstream busy, or raise its `connectionsMax`, `queuedRequestsMax` or `queueTimeoutMs`",
  },
  tls_protocol_error: {
    says: "the upstream does not speak TLS that Portico speaks",
    fix: "correct port or scheme of the upstream's `url`; the error log has OpenSSL's reason",
  },
  tls_certificate_error: {
    says: "the upstream's certificate is not valid for it",
    fix: "renew it, or set `tls.caFile` or `tls.serverName` of the upstream; the error log says which",
  },
  tls_alert_received: {
    says: "the upstream refused the TLS handshake",
    fix: "look at the error log for the alert; a client certificate is set by `tls.certificateFile`",
  },
  http_request_error: {
    says: "the request is malformed, too long, or was not sent in time",
    fix: "correct the client; for long bodies raise `requestBodyBytesMax`, for slow ones `requestBodyTimeoutMs`",
  },
  http_request_denied: {
    says: "requests like this one are refused for now, by `portico maintenance` or `portico quiesce`",
    fix: "`portico maintenance off` ends a maintenance; a quiesce ends with its command",
  },
  http_response_incomplete: {
    says: "the upstream's response ended before it was complete",
    fix: "look at the upstream's own log: it crashed, or announced another length than it sent",
  },
  http_response_header_section_size: {
    says: "the head of the upstream's response is longer than `headBytesMax`",
    fix: "raise `headBytesMax` of the upstream, or have it set fewer cookies",
  },
  http_response_transfer_coding: {
    says: "the upstream's response is framed in a way that cannot be read: a transfer coding, or broken chunks",
    fix: "look at the error log for what is wrong, and correct the upstream",
  },
  http_response_timeout: {
    says: "the upstream did not begin its response within `readTimeoutMs`",
    fix: "look at the upstream: it hangs, or works for long; then give it a longer `readTimeoutMs`",
  },
  http_upgrade_failed: {
    says: "the upstream answered a request for a WebSocket with neither a WebSocket nor an error",
    fix: "look whether the upstream serves WebSockets at this path",
  },
  http_protocol_error: {
    says: "the upstream's response is no valid HTTP",
    fix: "look at the error log for what is wrong with it, and correct the upstream",
  },
  proxy_internal_error: {
    says: "Portico itself failed: an internal fault, a fault of a disk, or no descriptors or ports were left",
    fix: "look at the error log, and report what it calls an internal fault",
  },
  proxy_configuration_error: {
    says: "this host does not let Portico connect to the upstream",
    fix: "let the proxy's user connect: group and mode of the socket, or the rules of this host's firewall",
  },
  client_gone: {
    says: "the client's connection, or its stream, ended before it had the whole response",
    fix: "nothing, if people stop downloads or close pages; else compare the times of the client and of proxies before this one",
  },
} as const satisfies Readonly<Record<string, TokenFacts>>;

/** How a request failed: one of {@link ERROR_TOKENS}. */
export type ErrorToken = keyof typeof ERROR_TOKENS;
