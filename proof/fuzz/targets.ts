import type { FuzzTarget } from "./target.js";
import { HTTP1_TARGETS } from "./targets/http1.js";
import { HTTP2_TARGETS } from "./targets/http2.js";
import { LISTEN_TARGETS } from "./targets/listen.js";
import { MODEL_TARGETS } from "./targets/model.js";
import { SETTINGS_TARGETS } from "./targets/settings.js";

/** Everything that is fuzzed. */
export const TARGETS: readonly FuzzTarget[] = [
  ...HTTP1_TARGETS,
  ...HTTP2_TARGETS,
  ...LISTEN_TARGETS,
  ...MODEL_TARGETS,
  ...SETTINGS_TARGETS,
];
