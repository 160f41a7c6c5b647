// Loading it late is the purpose; synthesis is synchronous, so `import()` cannot.
/* oxlint-disable typescript/no-require-imports */
import type * as files from "@cdktf/provider-local/lib/file";
import type * as sensitiveFiles from "@cdktf/provider-local/lib/sensitive-file";

/** The local provider's resources, loaded when they are first used: stacks that deliver over ssh have none. */
export const localProvider = {
  get File() {
    return (require("@cdktf/provider-local/lib/file") as typeof files).File;
  },
  get SensitiveFile() {
    return (require("@cdktf/provider-local/lib/sensitive-file") as typeof sensitiveFiles).SensitiveFile;
  },
};
