import { realpath } from "node:fs/promises";
import { dirname } from "node:path";
import { fsPath } from "../../runtime/actions/permissions.js";
import { actingOn } from "./acting.js";

/** The paths that a user decides about: root's own way there, which follows no one's word, ends with that user. */
export class Realm {
  private readonly directories = new Map<string, Promise<boolean>>();

  constructor(private readonly uid: number) {}

  /** @param path absolute, one char a byte */
  async includes(path: string): Promise<boolean> {
    // By a link of the user's, what root is told to do there would be done elsewhere.
    const real = await realpath(fsPath(path), "buffer").catch(() => undefined);
    if (real?.toString("latin1") !== path) return false;
    const directory = dirname(path);
    const known = this.directories.get(directory) ?? this.endsHere(directory);
    this.directories.set(directory, known);
    // The first directory that is the user's lies in one that is not.
    return (await known) || this.endsHere(path);
  }

  private endsHere(path: string): Promise<boolean> {
    return actingOn(path).then(
      ({ uid }) => uid === this.uid,
      () => false,
    );
  }
}
