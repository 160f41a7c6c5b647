import type { Case } from "./deviations.js";
import { RESPONSE_CASES } from "./cases/responses.js";
import { LIMIT_CASES } from "./cases/limits.js";
import { LOCATION_CASES, STRIP_CASES } from "./cases/locations.js";
import { REDIRECT_CASES, REWRITE_CASES } from "./cases/redirects.js";
import { REQUEST_BODY_CASES } from "./cases/requestBodies.js";
import { REQUEST_HEADER_CASES } from "./cases/requestHeaders.js";
import { SERVER_CASES } from "./cases/servers.js";
import { SERVICE_CASES } from "./cases/spec.js";
import { CONDITIONAL_CASES, FILE_CASES } from "./cases/staticFiles.js";

/** The table: everything that is asked of both proxies. */
export const CASES: readonly Case[] = [
  ...SERVICE_CASES,
  ...SERVER_CASES,
  ...LOCATION_CASES,
  ...STRIP_CASES,
  ...REQUEST_HEADER_CASES,
  ...REQUEST_BODY_CASES,
  ...RESPONSE_CASES,
  ...REWRITE_CASES,
  ...REDIRECT_CASES,
  ...FILE_CASES,
  ...CONDITIONAL_CASES,
  ...LIMIT_CASES,
];
