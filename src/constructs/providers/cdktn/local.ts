import type { Construct } from "constructs";
import { provideFor } from "../defaultProvider.js";
import type { LocalFile, LocalFileArguments } from "../resources.js";
import { OwnResource } from "./ownResource.js";

class File extends OwnResource implements LocalFile {
  get contentSha256(): string {
    return this.getStringAttribute("content_sha256");
  }
}

export function localFile(
  scope: Construct,
  id: string,
  { sensitive, ...config }: LocalFileArguments,
): LocalFile {
  provideFor(scope, "local");
  return new File(scope, id, sensitive ? "local_sensitive_file" : "local_file", config);
}
