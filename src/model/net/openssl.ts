import { createSecureContext, type SecureContext, type SecureContextOptions } from "node:tls";

/** Contexts of TLS as this machine's OpenSSL makes them, or refuses to. */

/**
 * A server of ours checks no certificate of a client. Without this, Node reads all roots that Node has, in every process,
 * which costs some 25 ms at the start of each process.
 */
export const NO_ROOTS: string[] = [];

type ContextResult = { readonly context: SecureContext } | { readonly refused: string };

/** A server's context, or why OpenSSL refuses to make it. */
export const contextOf = (options: SecureContextOptions): ContextResult =>
  tried(() => createSecureContext({ ca: NO_ROOTS, ...options }));

/** A context, or why OpenSSL refuses to make it. */
export function tried(make: () => SecureContext): ContextResult {
  try {
    return { context: make() };
  } catch (error) {
    forgetErrors();
    return { refused: reason(error as Error) };
  }
}

/**
 * After an unknown curve, Node 20 leaves the words of OpenSSL in the thread's queue of errors, and refuses the next key
 * that is read because of them, also in a later reload. A context that succeeds empties the queue.
 */
function forgetErrors(): void {
  createSecureContext({ ca: NO_ROOTS });
}

/** OpenSSL's reason without its file names and numbers. */
export function reason(error: Error & { reason?: string }): string {
  return error.reason ?? error.message;
}

/** Whether OpenSSL has a group for the key exchange. */
export const knowsGroup = (ecdhCurve: string): boolean => "context" in contextOf({ ecdhCurve });
