/** Why a request is refused, whatever the action of its route. The reason goes to the error log only. */
export interface RequestRefusal {
  readonly status: 400 | 405;
  readonly reason: string;
}

/** It would make the proxy a tunnel to anywhere (decisions 2.7). */
export const CONNECT_REFUSAL: RequestRefusal = { status: 400, reason: "CONNECT is not served" };
/** It shows a client's secrets to scripts (decisions 2.7). */
export const TRACE_REFUSAL: RequestRefusal = { status: 405, reason: "TRACE is not served" };

/**
 * Whether a request body is too long, which is 413.
 *
 * @param max `requestBodyBytesMax` of the route
 */
export const isBodyTooLong = (bytes: number, max: number): boolean => max !== 0 && bytes > max;
