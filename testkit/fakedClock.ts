import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

/** The wall clock of a process and its children, which may jump; the monotonic clock runs on. */
export class FakedClock {
  /** A command that runs the rest of its arguments with this clock. */
  readonly under: readonly string[];
  private readonly file: string;

  /** @param folder for the file that says how far the clock is off */
  constructor(folder: string) {
    this.file = join(folder, "faketime");
    this.jump("+0");
    const library = execFileSync("sh", ["-c", "ls /usr/lib/*/faketime/libfaketime.so.1"]).toString().trim();
    this.under = [
      "env",
      "FAKETIME_NO_CACHE=1",
      "FAKETIME_DONT_FAKE_MONOTONIC=1",
      "DONT_FAKE_MONOTONIC=1",
      `FAKETIME_TIMESTAMP_FILE=${this.file}`,
      `LD_PRELOAD=${library}`,
    ];
  }

  /** @param by as faketime reads it, from the real time on: `-3000d`, `+5` */
  jump(by: string): void {
    writeFileSync(this.file, by);
  }
}
