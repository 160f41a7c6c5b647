// Loading it late is the purpose.
/* oxlint-disable typescript/no-require-imports */
import type * as files from "@cdktf/provider-local/lib/file";
import type * as sensitiveFiles from "@cdktf/provider-local/lib/sensitive-file";
import type { Construct } from "constructs";
import { provideFor } from "./defaultProvider.js";
import { loaded } from "./loaded.js";
import type { LocalFile, LocalFileArguments } from "./resources.js";

const PACKAGE = "@cdktf/provider-local";

/** The local provider's package is loaded when a stack has a file: one that delivers over ssh has none. */
export function localFile(
  scope: Construct,
  id: string,
  { sensitive, ...config }: LocalFileArguments,
): LocalFile {
  provideFor(scope, "local");
  const Resource = loaded(scope, PACKAGE, () =>
    sensitive
      ? (require("@cdktf/provider-local/lib/sensitive-file") as typeof sensitiveFiles).SensitiveFile
      : (require("@cdktf/provider-local/lib/file") as typeof files).File,
  );
  return new Resource(scope, id, config);
}
