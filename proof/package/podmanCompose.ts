import { join } from "node:path";
import { pythonPackage } from "../../testkit/pythonPackage.js";

/** What runs Compose files. */
const environment = pythonPackage("podman-compose", "1.6.0");
export const PODMAN_COMPOSE = join(environment.programs, "podman-compose");
export const prepareCompose = environment.prepare;
