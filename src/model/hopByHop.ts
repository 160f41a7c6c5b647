/** Fields of a connection, which HTTP/2 does not allow (RFC 9113, 8.2.2); lower case. */
export const CONNECTION_FIELDS: readonly string[] = [
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
];

/** Fields that apply to one connection only and are not forwarded, framing included (RFC 9110, 7.6.1). */
export const HOP_BY_HOP: readonly string[] = [
  ...CONNECTION_FIELDS,
  "te",
  "trailer",
  "http2-settings",
  "content-length",
];

/** Request fields that are never forwarded; lower case. */
export const NOT_FORWARDED: readonly string[] = [
  ...HOP_BY_HOP,
  ...["host", "expect", "proxy-authorization"],
  // To programs that read their environment it is the proxy to connect through (httpoxy, CVE-2016-5385).
  "proxy",
];
