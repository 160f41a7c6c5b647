import { isOwnErrorPage, isVersioned, type ProbeAnswer } from "./expectation.js";
import type { ExpectedResponse } from "./expectedResponses.js";
import { isLoopback } from "../model/index.js";
import type { ProbeFailure } from "./probe.js";

/** The likely cause of a row that fails, as service 6 names it. */
export function causeOfAnswer(row: ExpectedResponse, answer: ProbeAnswer): string {
  if (row.subject === "default") return defaultServerCause(answer);
  if (row.subject === "certificate") return CERTIFICATE;
  if (isVersioned(answer.headers["server"])) return `the default virtual server answered: ${WRONG_NAME}`;
  switch (row.subject) {
    case "media":
      if (answer.status === 403) return `${MEDIA_PERMISSIONS}; the error log names it`;
      if (answer.status === 404)
        return `${WRONG_NAME}, or the media path in the config does not match the installation`;
      return "something other than the media route answered";
    case "redirect":
      return "the listener is not in TLS mode, or the redirect names another host or port";
    case "web":
      return webCause(row, answer);
    case "fileServer":
      return daemonCause(
        "file server daemon",
        row,
        answer,
        "; login works but upload or view fails (FILE_SERVER_ROOT, host and port of section fileserver)",
      );
    case "webdav":
      return daemonCause("WebDAV daemon", row, answer, "; without WebDAV, leave the route out");
  }
}

/** The likely cause if nothing answered. */
export function causeOfFailure(row: ExpectedResponse, failure: ProbeFailure): string {
  const { address, port, scheme } = row.request;
  const at = `${address} port ${port}`;
  if (failure.code === "ECONNREFUSED") {
    return `nothing listens on ${at}: the proxy does not run there, or the config in use has other listeners`;
  }
  const isUnreachable = UNREACHABLE.has(failure.code);
  if (isUnreachable && isLoopback(address)) {
    return `nothing answers on ${at}: the proxy or the daemon behind it hangs, or a packet filter of this host drops what is sent to itself`;
  }
  if (isUnreachable) {
    return `${at} cannot be reached: a firewall or a missing port forward; or, if it works from outside the LAN but not from inside, the router lacks NAT loopback (hairpinning)`;
  }
  if (failure.code === "ENOTFOUND" || failure.code === "EAI_AGAIN") {
    return `${address} has no DNS record here: give the host's address with --connect`;
  }
  if (scheme === "https" && /CERT|SELF_SIGNED|UNABLE_TO/.test(failure.code)) {
    return "the certificate is not trusted: a self-signed one needs an exception (--insecure), any other needs its whole chain";
  }
  if (scheme === "https" && /SSL|EPROTO|TLS/.test(failure.code)) {
    return `the TLS handshake with ${at} failed: it does not speak TLS, or offers no TLS version this client has`;
  }
  return `the connection to ${at} was lost: see the proxy's error log`;
}

const UNREACHABLE = new Set(["ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH"]);

const WRONG_NAME =
  "the server name in the proxy config is not the host address or domain used in the request, or the config is not enabled";

const CERTIFICATE =
  "no certificate of the listener is for this name, or the one that is for it is not in use: see `portico certificates`";

const MEDIA_PERMISSIONS =
  "the media file is not world readable, or one of its directories lacks read and execute permission for others";

const WEB_DAEMON =
  "the web application daemon and the proxy do not work together: check that the fastcgi start variant is not used in the service unit";

function defaultServerCause(answer: ProbeAnswer): string {
  return isVersioned(answer.headers["server"])
    ? "the default virtual server answers, but its page is missing"
    : "another virtual server or another program answered: the default virtual server is not enabled on the port";
}

function webCause(row: ExpectedResponse, answer: ProbeAnswer): string {
  if (answer.status === 404 && isOwnErrorPage(answer)) return WRONG_NAME;
  const settings = settingsOfAnswer(row, answer);
  if (answer.status !== 302 && settings.length === 0) return `${WEB_DAEMON}${running(row)}`;
  const { path } = row.request;
  if (answer.status === 404)
    return `the web application has no page at ${path}: SITE_ROOT is not set to \`${path}\``;
  if (settings.includes("ALLOWED_HOSTS"))
    return `the web application refuses the name ${row.request.host}: ALLOWED_HOSTS does not contain it`;
  const location = answer.headers["location"];
  if (settings.includes("LOGIN_URL")) {
    const wanted = `LOGIN_URL is not set to \`${path}accounts/login/\``;
    return `the web application redirects to ${location}: ${wanted} (or SITE_ROOT not to \`${path}\`)`;
  }
  if (settings.includes("SERVICE_URL"))
    return `the web application redirects to ${location}: SERVICE_URL is wrong, or the web application does not see the scheme and host of the request (Host, X-Forwarded-Proto)`;
  if (answer.protocol !== "HTTP/2" && row.request.scheme === "https")
    return "the listener does not offer HTTP/2";
  return "the answer is not the web application's: another program listens on its port";
}

/**
 * Settings of the application (service 2.1) that an answer shows to be wrong or missing, the likeliest first; none if
 * the cause is something else. Django answers 404 for a path without a URL of its own, and 400 for a host that is not
 * allowed.
 */
export function settingsOfAnswer(row: ExpectedResponse, answer: ProbeAnswer): readonly string[] {
  if (row.subject !== "web" || isOwnErrorPage(answer)) return [];
  if (answer.status === 404) return ["SITE_ROOT"];
  if (answer.status === 400) return ["ALLOWED_HOSTS"];
  const [wanted] = row.expected.filter((e) => e.says.startsWith("Location"));
  if (answer.status !== 302 || wanted === undefined || wanted.holds(answer)) return [];
  const { scheme, host, path } = row.request;
  const asked = `${scheme}://${host}${path}`;
  const received = answer.headers["location"];
  if (received === undefined || !URL.canParse(received, asked)) return [];
  const { pathname, origin } = new URL(received, asked);
  if (pathname !== `${path}accounts/login/`) return ["LOGIN_URL", "SITE_ROOT"];
  return origin === new URL(asked).origin ? [] : ["SERVICE_URL"];
}

function daemonCause(name: string, row: ExpectedResponse, answer: ProbeAnswer, more: string): string {
  if (answer.status === 404) return WRONG_NAME;
  if (answer.status === 502 || answer.status === 504)
    return `the ${name} does not answer on ${row.upstream}${more}`;
  return "something other than the application's virtual server answered";
}

function running(row: ExpectedResponse): string {
  return row.upstream === undefined ? "" : `, and that it runs and listens on ${row.upstream}`;
}
