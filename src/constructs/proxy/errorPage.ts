import type { errorPageFile, errorPageText } from "../../model/config/errorPages.js";
import type { PauseResponse } from "../../applications/index.js";
import type { InputOf } from "../../model/schema/inferred.js";
import type { ERROR_PAGE_STATUSES } from "../../model/index.js";
import { fields, recordOf, required, text } from "../props/propTable.js";

/**
 * A page of your own in place of the proxy's error pages: in the config (`html`), or in a file on the host (`file`).
 * The page is for responses of the proxy itself; responses of upstreams and of `Action.respond` do not change.
 *
 * Clients that request `text/html` by name receive the page, as browsers do; other clients receive the proxy's short
 * page. The proxy replaces these placeholders with escaped values: `{{status}}`, `{{reason}}`, `{{requestId}}` as in
 * the logs, `{{time}}` in UTC, `{{serverName}}`, and `{{retryAfter}}`, the seconds of `Retry-After`, or nothing. Any
 * other name in double braces is refused (`config.bad-error-page`). See docs/pauses.md.
 */
export type ErrorPage = ErrorPageText | ErrorPageFile;

/** A status that can have a page. */
export type ErrorPageStatus = (typeof ERROR_PAGE_STATUSES)[number];

/** What every page has. In both kinds it is one member, for editors to show its text. */
export interface ErrorPageStatuses extends Pick<InputOf<typeof errorPageText>, "statuses"> {
  readonly statuses: readonly ErrorPageStatus[];
}

/** A page whose text is in the config. */
export interface ErrorPageText extends ErrorPageStatuses, Pick<InputOf<typeof errorPageText>, "html"> {}

/** A page whose text is on the host. */
export interface ErrorPageFile extends ErrorPageStatuses, Pick<InputOf<typeof errorPageFile>, "file"> {
  /** @remarks Deliver the file by a `HostFile` with `role: "page"`; the proxy then reloads when the file changes. */
  readonly file: string;
}

/** @internal */
export const PAUSE_RESPONSE = fields<PauseResponse>({
  contentType: required(text),
  body: required(text),
  headers: recordOf(text),
});
