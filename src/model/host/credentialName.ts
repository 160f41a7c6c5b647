/**
 * Names of files that systemd passes to the service as credentials. The unit gives them, and the runtime looks for a
 * file's credential under both.
 */

/** The last segment of a path. */
export const baseName = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

/** A name for the whole path, used if another file has the same base name: certbot calls them all `privkey.pem`. */
export const pathName = (path: string): string => path.slice(1).replaceAll("/", "_");
