import type { Construct } from "constructs";
import { dhParametersPem } from "../render/index.js";
import type { IHost } from "./host.js";
import { HostFile } from "./hostFile.js";

/** The parameters are not secret and the same for everyone, so the materials of a proxy share them. */
export function dhParametersFile(scope: Construct, place: { host: IHost; directory: string }): HostFile {
  const id = "DhParameters";
  const existing = scope.node.tryFindChild(id);
  if (existing !== undefined) return existing as HostFile;
  return new HostFile(scope, id, {
    host: place.host,
    path: `${place.directory}/dhparam2048.pem`,
    content: dhParametersPem(),
    role: "tls",
  });
}
