import { stat } from "node:fs/promises";

/** Files that change together, and the callback for a change. */
export interface WatchedFiles {
  readonly paths: readonly string[];
  /**
   * Called when they were first seen, and when they changed.
   *
   * @param current whether they are still watched; loading them takes time
   */
  changed(current: () => boolean): Promise<void>;
}

/**
 * Notices files that were written or replaced, and links that were switched, as certbot and kubelet do it.
 *
 * It checks the files every few seconds: `fs.watch` does not notice that a link on the path to a file was switched, and
 * does not work at all on some file systems. A change counts when two checks in a row found the same state, so that
 * files that belong together are complete.
 */
export class FileWatch {
  private timer: NodeJS.Timeout | undefined;
  /** Changes when other files have to be watched. */
  private round = 0;

  /** Watches these files, and no others. */
  async begin(files: Promise<readonly WatchedFiles[]>): Promise<void> {
    this.stop();
    const { round } = this;
    const watched = (await files).map((one) => ({ files: one, seen: "", taken: "" }));
    if (watched.length > 0) this.lookLater(watched, round);
  }

  stop(): void {
    clearTimeout(this.timer);
    this.round += 1;
  }

  private lookLater(watched: readonly State[], round: number): void {
    if (round === this.round) this.timer = setTimeout(() => void this.look(watched, round), LOOK_MS).unref();
  }

  private async look(watched: readonly State[], round: number): Promise<void> {
    for (const one of watched) {
      const state = await stateOfAll(one.files.paths);
      const settled = state === one.seen;
      one.seen = state;
      if (!settled || state === one.taken) continue;
      one.taken = state;
      await one.files.changed(() => round === this.round);
    }
    this.lookLater(watched, round);
  }
}

interface State {
  readonly files: WatchedFiles;
  /** At the last check. */
  seen: string;
  /** When a change was reported last; at first unknown. */
  taken: string;
}

/** Changes when one of the files is written or replaced. */
export const stateOfAll = async (paths: readonly string[]): Promise<string> =>
  (await Promise.all(paths.map(stateOf))).join(" ");

/** The file at a path and its state; stays the same until the file is written or replaced. */
async function stateOf(path: string): Promise<string> {
  const found = await stat(path, { bigint: true }).catch(() => undefined);
  return found === undefined ? "missing" : [found.dev, found.ino, found.size, found.mtimeNs].join(":");
}

/** A change is reported after two checks. */
const LOOK_MS = 3_000;
