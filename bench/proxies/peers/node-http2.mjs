import http from "node:http";
import http2 from "node:http2";
import { pipeline } from "node:stream";
import { forwardedFields, originOf, settings, tlsOptions } from "./server.mjs";

/** node:http2 in front, node:http behind: what one writes without a library. */
const agent = new http.Agent({ keepAlive: true, maxFreeSockets: 64 });
const ignore = () => undefined;
const CONNECTION_SPECIFIC = new Set(["connection", "keep-alive", "transfer-encoding", "upgrade"]);

function without(headers, dropped) {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !dropped(name)));
}

const server = http2.createSecureServer({ ...tlsOptions(), allowHTTP1: false });
server.on("sessionError", ignore);
server.on("stream", (stream, headers) => {
  stream.on("error", ignore);
  const { ":method": method, ":path": path, ":authority": host } = headers;
  const request = { socket: stream.session.socket, headers };
  const fields = {
    ...without(headers, (name) => name.startsWith(":")),
    host,
    ...forwardedFields(request),
  };
  const out = http.request(`${originOf(path)}${path}`, { agent, method, headers: fields }, (incoming) => {
    // The client may have gone meanwhile.
    if (stream.destroyed || stream.closed) return void incoming.destroy();
    stream.respond({
      ":status": incoming.statusCode,
      ...without(incoming.headers, (name) => CONNECTION_SPECIFIC.has(name)),
    });
    pipeline(incoming, stream, ignore);
  });
  out.on("error", () => stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR));
  pipeline(stream, out, ignore);
});
server.listen(settings.port, "127.0.0.1", 4096);
