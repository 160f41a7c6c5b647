import { Laboratory, type Performer } from "../wire/stage.js";
import type { Mode } from "../wire/site.js";
import { findNginx, startNginx } from "./nginxServer.js";

/** Both proxies in both modes, each with upstreams of its own. */
export interface Pairs extends Record<Mode, { readonly nginx: Performer; readonly portico: Performer }> {
  stop(): Promise<void>;
}

export function startPairs(): Promise<Pairs> {
  const nginx = findNginx();
  if (nginx === undefined) throw new Error("nginx is not installed (Debian: apt install nginx-light)");
  return Laboratory.open(async (laboratory) => {
    const pair = async (mode: Mode) => ({
      nginx: await laboratory.start(mode, (...where) => startNginx(nginx, ...where)),
      portico: await laboratory.portico(mode),
    });
    return { plain: await pair("plain"), tls: await pair("tls") };
  });
}
