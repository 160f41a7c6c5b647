import { connect } from "node:net";
import { ERROR_TOKENS } from "../../../model/net/errorTokens.js";
import type { CauseConfig } from "../../../model/host/expect.js";
import { hasName, serversOf, type UpstreamConfig, upstreamAddress } from "../../../model/index.js";
import { connectToken, type SocketError } from "../../../runtime/upstream/failures.js";
import { emptiness } from "./emptiness.js";
import { isProxysRefusal, type ReceivedResponse } from "./expectation.js";
import type { ExpectedProbe } from "./expectedResponses.js";

/** What a look at the servers or the directory behind a route explains, and what to do about it. */
export type SeenBehind = Pick<CauseConfig, "message" | "fix">;

/**
 * Looks from this machine at what is behind a route, because the response of a proxy names no upstream.
 *
 * @returns undefined if that does not explain the response
 */
export async function seeBehind(
  { route, upstream }: ExpectedProbe,
  response: ReceivedResponse,
): Promise<SeenBehind | undefined> {
  if (upstream !== undefined && isProxysRefusal(response)) return lostServers(upstream, response.status);
  if (route?.action.type !== "staticFiles" || response.status < 400) return undefined;
  const { directory } = route.action;
  const lacks = await emptiness(directory);
  return lacks && { message: `the directory ${directory} ${lacks.what}`, fix: lacks.fix };
}

/** The same for a machine that sees only the response. */
export function behindUnseen({ route }: ExpectedProbe, response: ReceivedResponse): SeenBehind | undefined {
  if (route?.action.type !== "staticFiles" || response.status !== 403) return undefined;
  const { directory, index } = route.action;
  const lacks = index.length === 0 ? "" : `has no file ${index.join(" or ")}, or `;
  const message = `the directory ${directory} ${lacks}cannot be read by others`;
  return { message, fix: "Read in the proxy's error log which file or permission is missing." };
}

/** The reasons, if no server of an upstream accepts a connection; else what the proxy then misses. */
async function lostServers(upstream: UpstreamConfig, status: number): Promise<SeenBehind | undefined> {
  const urls = serversOf(upstream).map(({ url }) => url);
  const tried = await Promise.all(urls.map(async (url) => ({ url, failed: await tryServer(url) })));
  const { name } = upstream;
  const failed = tried.flatMap(({ url, failed: error }) => (error === undefined ? [] : [{ url, ...error }]));
  if (failed.length < tried.length) {
    const misses = MISSES[status];
    if (misses === undefined) return undefined;
    const isSocket = status === 502 && urls.every((url) => url.startsWith("unix:"));
    const fix = isSocket ? `${WRITABLE} ${READ_LOG}` : READ_LOG;
    return { message: `upstream ${name} accepts connections from here, but ${misses}`, fix };
  }
  const tokens = [...new Set(failed.map(({ token }) => token))];
  const reasons = tokens.map((token) => {
    const at = failed.filter((one) => one.token === token).map(({ url, why }) => `${why} at ${url}`);
    return `${ERROR_TOKENS[token].message} (${at.join(", ")})`;
  });
  const what =
    urls.length === 1 ? `upstream ${name} cannot be reached` : `no server of upstream ${name} is up`;
  const byNames = urls.some(hasName) ? ", by its resolver" : "";
  return {
    message: `${what}, tried from this machine${byNames}: ${reasons.join("; ")}`,
    fix: `${tokens.map((token) => ERROR_TOKENS[token].fix).join("; ")}.`,
  };
}

const MISSES: Readonly<Partial<Record<number, string>>> = {
  502: "the proxy gets no complete response",
  504: "does not respond in time",
};

/** A look as root says nothing of that: root may write to every socket. */
export const WRITABLE =
  "Let the proxy's user write to the socket: by `service: { groups }`, or by the mode of the socket.";

const READ_LOG =
  "Read the proxy's error log: the upstream may refuse the proxy's user, fail in TLS, or close connections early.";

/** An attempt to connect to a server; undefined if it accepts the connection. */
export function tryServer(
  url: string,
  timeoutMs = CONNECT_MS,
): Promise<{ readonly token: keyof typeof ERROR_TOKENS; readonly why: string } | undefined> {
  return new Promise((resolve) => {
    const socket = connect(upstreamAddress(url));
    const done = (failed?: Awaited<ReturnType<typeof tryServer>>): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(failed);
    };
    const late = { token: "connection_timeout", why: `none within ${timeoutMs} ms` } as const;
    const timer = setTimeout(() => done(late), timeoutMs);
    socket.once("connect", () => done());
    socket.on("error", (error: SocketError) =>
      done({ token: connectToken(error, false), why: error.code ?? error.message }),
    );
  });
}

/** The proxy's limit for a connect if there is another server. */
export const CONNECT_MS = 3_000;
