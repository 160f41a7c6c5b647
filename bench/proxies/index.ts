import { caddy } from "./caddy.js";
import { haproxy } from "./haproxy.js";
import { nginx } from "./nginx.js";
import { nodePeers } from "./nodePeers.js";
import { portico } from "./portico.js";
import type { ProxyKind } from "../lib/proxy.js";

/** Everything that can be measured, in the order of the table. */
export const PROXIES: readonly ProxyKind[] = [portico, nginx, haproxy, caddy, ...nodePeers];
