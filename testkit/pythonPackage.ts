import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../build/paths.js";
import { runUnseen } from "./unseen.js";

/** A program from Python's index, apart from all others. */
export function pythonPackage(name: string, version: string) {
  const folder = join(ROOT, `.cache/python/${name}-${version}`);
  const stamp = join(folder, "made");
  return {
    /** Where its programs are. */
    programs: join(folder, "bin"),
    /** Installs it, unless it is there. */
    prepare: async (): Promise<void> => {
      if (existsSync(stamp)) return;
      rmSync(folder, { recursive: true, force: true });
      await runUnseen("python3", ["-m", "venv", folder]);
      await runUnseen(join(folder, "bin/pip"), ["install", "--quiet", `${name}==${version}`]);
      // Last, so that an environment that was cut off is not taken for a whole one.
      writeFileSync(stamp, "");
    },
  };
}
