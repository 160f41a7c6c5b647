import { getSystemErrorMap } from "node:util";

/** A system error as nginx words it: `(13: Permission denied)`; the plain message for any other error. */
export function systemReason(error: Error): string {
  const { errno } = error as NodeJS.ErrnoException;
  const words = errno === undefined ? undefined : getSystemErrorMap().get(errno)?.[1];
  if (errno === undefined || words === undefined) return `(${error.message})`;
  return `(${-errno}: ${words.charAt(0).toUpperCase()}${words.slice(1)})`;
}

/** An error from the system; any other exception is a bug, and is thrown again for the code that counts bugs. */
export function systemError(error: unknown): NodeJS.ErrnoException {
  if (typeof (error as NodeJS.ErrnoException | undefined)?.errno !== "number") throw error;
  return error as NodeJS.ErrnoException;
}
