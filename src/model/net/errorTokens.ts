/** Facts about one way in which a request fails. */
interface TokenFacts {
  /** The failure as a sentence without a full stop. */
  readonly message: string;
  /** The fix, or where to look first. */
  readonly fix: string;
}

/**
 * Ways in which a request fails, by the names of RFC 9209, 2.3. The list has those that Portico distinguishes, and
 * `client_gone`, which the RFC does not need, because such a request gets no response.
 *
 * A missing, forbidden or unchanged file is not a failure of the proxy, nor is any response of an upstream, whatever
 * its status: these have no token.
 */
export const ERROR_TOKENS = {
  dns_timeout: {
    message: "no DNS server gave an address for the upstream's name within `connectTimeoutMs`",
    fix: "check the DNS servers in /etc/resolv.conf, or give the upstream's address in its `url`",
  },
  dns_error: {
    message: "the upstream's name has no address",
    fix: "correct the name in the upstream's `url`, or its DNS record; check it with `getent ahosts NAME`",
  },
  destination_not_found: {
    message: "no route of the virtual server matches the path",
    fix: "add a route, or request another path; `portico resolve URL` shows the route of a URL",
  },
  destination_unavailable: {
    message: "every server of the upstream is down or drained",
    fix: "start the servers again, or end their drain; `portico upstreams` shows their states",
  },
  destination_ip_unroutable: {
    message: "this host has no route to the upstream's address",
    fix: "correct the address in the upstream's `url`, or the routes of this host: `ip route get ADDRESS`",
  },
  connection_refused: {
    message: "nothing listens at the upstream's address",
    fix: "start the service, or correct port or path in the upstream's `url`",
  },
  connection_terminated: {
    message: "the upstream closed the connection before it responded",
    fix: "look at the upstream's log: it crashed, restarted, or closes idle connections sooner than Portico (`idleTimeoutMs`)",
  },
  connection_timeout: {
    message: "no connection to the upstream was made within `connectTimeoutMs`",
    fix: "check that the upstream's host is up, and that its firewall accepts connections from this host",
  },
  connection_read_timeout: {
    message: "the upstream paused in the middle of its response for longer than `readTimeoutMs`",
    fix: "look at the upstream's log; if such a pause is normal for this upstream, raise `readTimeoutMs`",
  },
  connection_write_timeout: {
    message: "the upstream read nothing of the request for longer than `sendTimeoutMs`",
    fix: "check whether the upstream hangs; if it only stores uploads slowly, raise `sendTimeoutMs`",
  },
  connection_limit_reached: {
    message: "no connection to the upstream was free, and the queue was full or the wait too long",
    fix: "find out what keeps the upstream busy, or raise its `connectionsMax`, `queuedRequestsMax` or `queueTimeoutMs`",
  },
  tls_protocol_error: {
    message: "the upstream does not speak TLS, or no TLS version or cipher that Portico supports",
    fix: "correct port or scheme of the upstream's `url`; the error log has OpenSSL's reason",
  },
  tls_certificate_error: {
    message: "the upstream's certificate has expired, is not trusted, or is for another name",
    fix: "renew the certificate, or set `tls.caFile` or `tls.serverName` of the upstream; the error log has the reason",
  },
  tls_alert_received: {
    message: "the upstream refused the TLS handshake",
    fix: "look at the error log for the alert; if the upstream demands a client certificate, set `tls.certificateFile`",
  },
  http_request_error: {
    message: "the request is malformed, too long, or was not sent in time",
    fix: "correct the client; for long bodies raise `requestBodyBytesMax`, for slow bodies `requestBodyTimeoutMs`",
  },
  http_request_denied: {
    message:
      "the route's `access`, `rateLimit` or `concurrencyMax` refuses the client, or `portico maintenance` or `portico quiesce` refuses such requests at present",
    fix: "add the client to `allow` of the policy, or raise the limit, that the log names; end a maintenance with `portico maintenance off`",
  },
  http_response_incomplete: {
    message: "the upstream's response ended before it was complete",
    fix: "look at the upstream's log: it crashed, or sent fewer bytes than its `Content-Length` says",
  },
  http_response_header_section_size: {
    message: "the head of the upstream's response is longer than `headBytesMax`",
    fix: "raise `headBytesMax` of the upstream, or make the upstream set fewer cookies",
  },
  http_response_transfer_coding: {
    message: "the upstream's response has a malformed chunked transfer coding",
    fix: "look at the error log for the defect, and correct the upstream",
  },
  http_response_timeout: {
    message: "the upstream did not begin its response within `readTimeoutMs`",
    fix: "check whether the upstream hangs; if it only takes long, raise `readTimeoutMs`",
  },
  http_upgrade_failed: {
    message: "the upstream responded to a WebSocket request over HTTP/2 with 2xx instead of 101",
    fix: "check that the upstream serves WebSockets at this path",
  },
  http_protocol_error: {
    message: "the upstream's response is not valid HTTP",
    fix: "look at the error log for the defect, and correct the upstream",
  },
  proxy_internal_error: {
    message: "Portico itself failed: an internal fault, a disk error, or no file descriptors or ports left",
    fix: "look at the error log, and report each line with `internal fault`",
  },
  proxy_configuration_error: {
    message: "this host does not let Portico connect to the upstream",
    fix: "let the proxy's user connect: correct group and mode of the socket, or the rules of this host's firewall",
  },
  client_gone: {
    message: "the client closed the connection or reset the stream before it had the whole response",
    fix: "nothing, if users stop downloads or close pages; else compare the timeouts of the client and of proxies in front of Portico",
  },
} as const satisfies Readonly<Record<string, TokenFacts>>;

/** How a request failed: one of {@link ERROR_TOKENS}. */
export type ErrorToken = keyof typeof ERROR_TOKENS;
