import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createWebUi } from "../../demo/upstreams/webUi.js";
import { createLoadUpstream } from "../../testkit/load/loadUpstream.js";

/**
 * All that the front end proxies to, in one pod: `upstream.mjs WEB_PORT FILES_PORT`. The first serves the demo's web
 * application, the second what `SIDE` names, and everything else as the load's upstream does.
 */
const [, , webPort, filesPort] = process.argv;

/** Uploads that began, by name, and the address of the pod that passed them on. */
const began = new Map<string, string>();

/** By the last segment of the path. */
const SIDE: Readonly<Record<string, (request: IncomingMessage, response: ServerResponse) => void>> = {
  /** What the upstream knows of its client. */
  seen: (request, response) =>
    response.end(
      JSON.stringify({
        forwardedFor: request.headers["x-forwarded-for"],
        forwardedProto: request.headers["x-forwarded-proto"],
        from: request.socket.remoteAddress,
      }),
    ),
  /** Takes an upload and responds with the hash of what came. */
  named: (request, response) => {
    began.set(new URL(request.url!, "http://upstream").search.slice(1), request.socket.remoteAddress!);
    const hash = createHash("sha256");
    request.on("data", (chunk: Buffer) => hash.update(chunk));
    request.on("end", () => response.end(hash.digest("hex")));
  },
  began: (_, response) => response.end(JSON.stringify(Object.fromEntries(began))),
};

function createFiles(load: Server): Server {
  return createServer((request, response) => {
    const [path = ""] = request.url!.split("?");
    const side = SIDE[path.slice(path.lastIndexOf("/") + 1)];
    if (side === undefined) load.emit("request", request, response);
    else side(request, response);
  });
}

const files = createFiles(createLoadUpstream());
// Node's five minutes for a whole request would cut off long uploads.
files.requestTimeout = 0;
const web = createWebUi({ web: "/sync", fileServer: "/synchttp", media: "/syncmedia", webdav: "/syncdav" });
// IPv4 alone: addresses of pods are compared as text.
files.listen(Number(filesPort), "0.0.0.0");
web.listen(Number(webPort), "0.0.0.0");
