import { daemonsOf, FILE_SYNC_ROWS, fileSyncTrees } from "../src/applications/index.js";
import { type Deployment, type DeploymentInput, parseDeployment } from "../src/model/index.js";

/** The deployment of a file-sync front end, with other fields by choice. */
export function deploymentOf(more: Partial<DeploymentInput> = {}): Deployment {
  const path = "/etc/portico/portico.json";
  const deployment = parseDeployment({
    version: 1,
    config: path,
    files: [{ path, mode: "0644", sha256: "0".repeat(64), role: "config" }],
    services: {
      proxy: { service: "portico.service", socket: "portico.socket" },
      daemons: daemonsOf({ webApplication: "web.service" }),
    },
    rows: FILE_SYNC_ROWS,
    trees: fileSyncTrees({ directory: "/opt/sync/media", avatarDirectory: "/opt/sync/avatars" }, false),
    ...more,
  });
  if (!deployment.ok) throw new Error(JSON.stringify(deployment.problems));
  return deployment.value;
}
