import { request } from "node:https";
import { getSystemErrorMap } from "node:util";
import { VERSION } from "../../model/version.js";
import type { Message } from "./messages.js";

/** How a message was taken. */
export type Taken =
  | { readonly ok: true }
  /** Why not, without the URL, which may be a secret; and when it may be tried again, if the target says so. */
  | { readonly ok: false; readonly why: string; readonly retryMs?: number };

/**
 * Sends one message over TLS that is verified. Redirects are not followed: a secret goes to nobody but whom it is for.
 *
 * @param roots PEM of the roots that are trusted; by default those that Node brings
 */
export function send(
  { method, url, headers, body }: Message,
  roots: string | undefined,
  signal: AbortSignal,
  deadlineMs = DEADLINE_MS,
): Promise<Taken> {
  return new Promise((resolve) => {
    const options = {
      method,
      headers: {
        "user-agent": `portico/${VERSION}`,
        ...headers,
        ...(body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) }),
      },
      // Whatever the environment says.
      rejectUnauthorized: true,
      agent: false,
      ...(roots === undefined ? {} : { ca: roots }),
    };
    const done = (taken: Taken): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
      resolve(taken);
      sent.destroy();
    };
    const sent = request(url, options, (response) => {
      const { statusCode: status = 0 } = response;
      response.on("error", () => undefined).resume();
      if (status >= 200 && status < 300) return done({ ok: true });
      const seconds = Number(response.headers["retry-after"]);
      const retryMs = seconds > 0 && seconds <= 3_600 ? { retryMs: seconds * 1_000 } : {};
      done({ ok: false, why: `it answers ${status}${hintOf(status)}`, ...retryMs });
    });
    const timer = setTimeout(
      () => done({ ok: false, why: `no response within ${deadlineMs / 1_000} s` }),
      deadlineMs,
    );
    const stop = (): void => done({ ok: false, why: "portico stops" });
    signal.addEventListener("abort", stop);
    sent.on("error", (error) => done({ ok: false, why: reasonOf(error) }));
    sent.on("close", () => done({ ok: false, why: "it closed the connection without a response" }));
    sent.end(body);
    if (signal.aborted) stop();
  });
}

function hintOf(status: number): string {
  if (status >= 300 && status < 400) return ", and redirects are not followed";
  if (status === 401 || status === 403) return ": it refuses the token, or the URL without one";
  return status === 404 || status === 405 ? ": the path of its URL is another one" : "";
}

/** Node's own messages may have the host of the URL, which is part of the secret. */
function reasonOf({ code = "", errno }: NodeJS.ErrnoException): string {
  if (/^(?:DEPTH_|SELF_|UNABLE_)/.test(code))
    return `its certificate is not trusted (${code}): one of a private authority needs \`roots\``;
  if (/^(?:ERR_TLS|CERT_)/.test(code)) return `its certificate is not trusted (${code})`;
  if (code === "ENOTFOUND") return "its name has no address (ENOTFOUND)";
  const words = getSystemErrorMap().get(errno ?? 0)?.[1];
  return `it cannot be reached (${words ?? (code === "" ? "the connection failed" : code)})`;
}

const DEADLINE_MS = 10_000;
