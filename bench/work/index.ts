import { atRest } from "./atRest.js";
import { loadCurve, sizeCurve } from "./curves.js";
import { downloads, uploads } from "./bulk.js";
import { distantUpload } from "./distantUpload.js";
import { tlsFull, tlsResumed } from "./handshakes.js";
import { household } from "./household.js";
import { latency } from "./latency.js";
import { memory } from "./memory.js";
import { requestSteps } from "./requestSteps.js";
import { routeScaling, serverScaling, upstreamScaling, workerScaling } from "./scaling.js";
import { smallHead, smallHttp1, smallHttp2, smallTls } from "./smallRequests.js";
import { start } from "./start.js";
import { staticFiles } from "./staticFiles.js";
import { synthesis } from "./synthesis.js";
import { victims } from "./victims.js";
import { worstHead } from "./worstHead.js";
import { importing, installing, packing } from "./weight.js";
import type { Work } from "../lib/work.js";

/** Every item, in the order of the table. */
export const WORK: readonly Work[] = [
  smallHttp1,
  smallTls,
  smallHttp2,
  smallHead,
  tlsFull,
  tlsResumed,
  ...downloads,
  ...uploads,
  distantUpload,
  ...staticFiles,
  latency,
  loadCurve,
  sizeCurve,
  ...memory,
  atRest,
  household,
  start,
  synthesis,
  importing,
  packing,
  installing,
  routeScaling,
  serverScaling,
  upstreamScaling,
  workerScaling,
  requestSteps,
  worstHead,
  victims,
];
