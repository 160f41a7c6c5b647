import { downloads, uploads } from "./bulk.js";
import { smallHttp1, smallHttp2, smallTls } from "./smallRequests.js";
import type { Work } from "./work.js";

/** Every item, in the order of the table. */
export const WORK: readonly Work[] = [smallHttp1, smallTls, smallHttp2, ...downloads, ...uploads];
