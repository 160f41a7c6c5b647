/** Paths of one char a byte, so that every file name can be written. */

/** A path as the file system takes it. */
export function fsPath(path: string): Buffer {
  return Buffer.from(path, "latin1");
}

/** A path in a line of text: UTF-8 if it is valid UTF-8, and nothing that could end the quoted path or the line. */
export function shown(path: string): string {
  return fsPath(path)
    .toString("utf8")
    .replace(/["\p{Cc}]/gu, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, "0")}`);
}

/** The command that gives a permission, to be pasted into a shell. */
export function chmodCommand(grant: "o+r" | "o+rx", path: string): string {
  const name = fsPath(path).toString("utf8");
  const printable = Buffer.from(name).equals(fsPath(path)) && !/\p{Cc}/u.test(name);
  if (printable) return `chmod ${grant} '${name.replaceAll("'", "'\\''")}'`;
  const escaped = path.replace(
    /[^ !"#-&(-[\]-~]/g,
    (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );
  return `chmod ${grant} $'${escaped}'`;
}

/** A file or directory, and its mode: `directory "/srv" (mode 0700)`. */
export function withMode(kind: "file" | "directory", path: string, mode: number): string {
  return `${kind} "${shown(path)}" (mode ${(mode & 0o7777).toString(8).padStart(4, "0")})`;
}
