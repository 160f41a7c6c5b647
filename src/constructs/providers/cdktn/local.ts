import type { Construct } from "constructs";
import { provideFor } from "../defaultProvider.js";
import type { LocalFile, LocalFileArguments } from "../resources.js";
import { File, SensitiveFile } from "./localResources.js";

export function localFile(
  scope: Construct,
  id: string,
  { sensitive, ...config }: LocalFileArguments,
): LocalFile {
  provideFor(scope, "local");
  return sensitive ? new SensitiveFile(scope, id, config) : new File(scope, id, config);
}
