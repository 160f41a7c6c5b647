import type { errorPageFile, errorPageText } from "../model/config/errorPages.js";
import type { InputOf } from "../model/inferred.js";
import type { ERROR_PAGE_STATUSES } from "../model/index.js";

/**
 * A page of your own in place of the proxy's error pages: in the config (`html`), or in a file on the host (`file`). It is
 * for what the proxy answers itself; what upstreams answer, and `Action.respond`, passes as it is.
 *
 * Who asks for `text/html` by its name gets it, as browsers do; programs get the proxy's own short page. In it these are
 * filled in, escaped: `{{status}}`, `{{reason}}`, `{{requestId}}`, which the logs have too, `{{time}}` in UTC,
 * `{{serverName}}`, and `{{retryAfter}}`, the seconds of `Retry-After`, or nothing. Any other name in double braces is
 * refused (`config.bad-error-page`). See docs/pauses.md.
 */
export type ErrorPage = ErrorPageText | ErrorPageFile;

/** A status that may have a page. */
export type ErrorPageStatus = (typeof ERROR_PAGE_STATUSES)[number];

/** A page that is in the config. */
export interface ErrorPageText extends InputOf<typeof errorPageText> {
  readonly statuses: readonly ErrorPageStatus[];
}

/** A page that is in a file. */
export interface ErrorPageFile extends InputOf<typeof errorPageFile> {
  readonly statuses: readonly ErrorPageStatus[];
  /** @remarks A `HostFile` with `role: "page"` brings it, and has the proxy reload when it changes. */
  readonly file: string;
}
