import { isOwnErrorPage, isVersioned, type ReceivedResponse } from "./expectation.js";
import type { CauseConfig } from "../../../model/host/expect.js";
import { SERVER_NAME, WRONG_NAME } from "../../../model/host/rows.js";
import { behindUnseen, type SeenBehind, WRITABLE } from "./behind.js";
import type { ExpectedProbe } from "./expectedResponses.js";
import { isLoopback, serversOf, type UpstreamConfig } from "../../../model/index.js";
import type { ProbeFailure } from "./probe.js";

/**
 * Why a response is not the expected one: the first cause of the row that fits, or one that any proxy may have.
 *
 * @param seen what a look behind the proxy shows; undefined if nothing was looked at, or that explains nothing
 */
export function causeOfResponse(
  row: ExpectedProbe,
  response: ReceivedResponse,
  seen?: SeenBehind,
): CauseConfig {
  const other = otherServer(row, response);
  const behind = other === undefined ? seen : undefined;
  const found = other ?? row.causes.find(({ evidence }) => shows(row, response, evidence));
  const { message, fix, ...cause } = found ?? { evidence: {}, ...(behind ?? commonCause(row, response)) };
  const said = filled(message, row, response);
  const fixes = fix ?? behind?.fix;
  return {
    ...cause,
    message: found === undefined || behind === undefined ? said : `${said}: ${behind.message}`,
    ...(fixes && { fix: filled(fixes, row, response) }),
  };
}

/** A `Server` field with a version shows that a default server responded. */
function otherServer({ unversioned }: ExpectedProbe, response: ReceivedResponse): CauseConfig | undefined {
  if (!unversioned || !isVersioned(response.headers["server"])) return undefined;
  return { evidence: {}, code: SERVER_NAME, message: `the default virtual server responded: ${WRONG_NAME}` };
}

function commonCause(row: ExpectedProbe, response: ReceivedResponse): CauseConfig {
  const { upstream } = row;
  const evidence = {};
  if (response.status === 404 && isOwnErrorPage(response))
    return { evidence, code: SERVER_NAME, message: WRONG_NAME };
  if (response.status === 503 && response.headers["retry-after"] !== undefined)
    return { evidence, ...REFUSED_FOR_NOW };
  if (upstream === undefined || (response.status !== 502 && response.status !== 504))
    return {
      evidence,
      message: "the response is not that of the deployed proxy",
      ...behindUnseen(row, response),
    };
  if (response.body !== undefined && !isOwnErrorPage(response))
    return { evidence, message: "the upstream {upstream} itself responds with {status}", fix: ITS_LOG };
  const message =
    response.status === 502 ? "refuses connections or closes them early" : "does not respond in time";
  const urls = urlsOf(upstream);
  // If a plain HTTP port refuses a connection, no further advice is needed.
  const right = urls.startsWith("unix:")
    ? ` If the program runs: ${WRITABLE}`
    : urls.startsWith("https:")
      ? " If the program runs, the proxy's error log names the fault of its certificate."
      : "";
  const fix = `Start the program that should listen on {upstream}.${right}`;
  return { evidence, message: `the upstream {upstream} ${message}`, fix };
}

const ITS_LOG = "Read the log of the program that listens on {upstream}.";

const urlsOf = (upstream: UpstreamConfig): string =>
  serversOf(upstream)
    .map(({ url }) => url)
    .join(", ");

/** Whether a response shows all that a cause needs. */
function shows(row: ExpectedProbe, response: ReceivedResponse, evidence: CauseConfig["evidence"]): boolean {
  const { status, statusNot, page, server, location, http2 } = evidence;
  return (
    (status === undefined || status.includes(response.status)) &&
    statusNot?.includes(response.status) !== true &&
    (page === undefined || (page === "proxy") === isOwnErrorPage(response)) &&
    (server === undefined || (server === "version") === isVersioned(response.headers["server"])) &&
    (location === undefined || location === wrongPart(row, response)) &&
    (http2 === undefined || response.protocol !== "HTTP/2")
  );
}

/** The wrong part of a `Location`; undefined if it is as expected, or cannot be compared. */
function wrongPart(
  { expected, request }: ExpectedProbe,
  response: ReceivedResponse,
): "path" | "origin" | undefined {
  const wanted = expected.find(({ targets }) => targets !== undefined);
  const received = response.headers["location"];
  const { scheme, host, path } = request;
  const asked = `${scheme}://${host}${path}`;
  if (wanted === undefined || wanted.holds(response) || received === undefined) return undefined;
  if (!URL.canParse(received, asked)) return undefined;
  const found = new URL(received, asked);
  const meant = wanted
    .targets!.map((target) => new URL(target))
    .find(({ pathname }) => pathname === found.pathname);
  if (meant === undefined) return "path";
  return found.origin === meant.origin ? undefined : "origin";
}

function filled(text: string, { request, upstream }: ExpectedProbe, response: ReceivedResponse) {
  const { host, path } = request;
  const values: Readonly<Record<string, string | undefined>> = {
    status: String(response.status),
    location: response.headers["location"],
    host,
    path,
    upstream: upstream === undefined ? "its upstream's address" : urlsOf(upstream),
  };
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);
}

/** The likely cause if there was no response. */
export function causeOfFailure(row: ExpectedProbe, failure: ProbeFailure): string {
  const { address, port, scheme } = row.request;
  const at = `${address} port ${port}`;
  if (failure.code === "ECONNREFUSED") {
    return `nothing listens on ${at}: the proxy does not run there, or the config in use has other listeners`;
  }
  const isUnreachable = UNREACHABLE.has(failure.code);
  if (isUnreachable && isLoopback(address)) {
    return `no response from ${at}: the proxy or the daemon behind it hangs, or a packet filter of this host drops packets that the host sends to itself`;
  }
  if (isUnreachable) {
    return `${at} cannot be reached: a firewall or a missing port forward; or, if it works from outside the LAN but not from inside, the router lacks NAT loopback (hairpinning)`;
  }
  if (failure.code === "ENOTFOUND" || failure.code === "EAI_AGAIN") {
    return `${address} has no DNS record here: set the host's address with --connect`;
  }
  if (scheme === "https" && /CERT|SELF_SIGNED|UNABLE_TO/.test(failure.code)) {
    return "the certificate is not trusted: a self-signed certificate needs --insecure; any other certificate needs its complete chain";
  }
  if (scheme === "https" && /SSL|EPROTO|TLS/.test(failure.code)) {
    return `the TLS handshake with ${at} failed: it does not speak TLS, or offers no TLS version this client has`;
  }
  return `the connection to ${at} was lost: see the proxy's error log`;
}

const REFUSED_FOR_NOW = {
  message: "the proxy, or a server behind it, refuses requests for now",
  fix: "`portico maintenance status` shows requests that a command refuses, `portico upstreams` servers that get none; the proxy's error log names an upstream that has reached its limit.",
};

const UNREACHABLE = new Set(["ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH"]);
