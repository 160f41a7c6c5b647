import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../../build/paths.js";
import { runUnseen } from "../kit/unseen.js";

const ENVIRONMENT = join(ROOT, ".cache/podman-compose-1.6.0");
export const PODMAN_COMPOSE = join(ENVIRONMENT, "bin/podman-compose");

/** Installs what runs Compose files, unless it is there. */
export async function prepareCompose(): Promise<void> {
  if (existsSync(PODMAN_COMPOSE)) return;
  rmSync(ENVIRONMENT, { recursive: true, force: true });
  await runUnseen("python3", ["-m", "venv", ENVIRONMENT]);
  await runUnseen(join(ENVIRONMENT, "bin/pip"), ["install", "--quiet", "podman-compose==1.6.0"]);
}
