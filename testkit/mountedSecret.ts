import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";

/**
 * A folder as kubelet mounts a Secret: each file is a link through `..data`, a link to a folder with one version of all
 * files. A new version is complete before `..data` is switched to it, and the one before is removed.
 */
export function mountSecret(folder: string, files: Readonly<Record<string, string>>, mode = 0o440): void {
  const data = join(folder, "..data");
  mkdirSync(folder, { recursive: true });
  const version = mkdtempSync(join(folder, "..2026_"));
  chmodSync(version, 0o755);
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(version, name), text);
    chmodSync(join(version, name), mode);
  }
  const before = existsSync(data) ? readlinkSync(data) : undefined;
  symlinkSync(version.slice(folder.length + 1), `${data}_tmp`);
  renameSync(`${data}_tmp`, data);
  for (const name of Object.keys(files)) {
    if (!existsSync(join(folder, name))) symlinkSync(join("..data", name), join(folder, name));
  }
  if (before !== undefined) rmSync(join(folder, before), { recursive: true });
}
