import http from "node:http";
import { pipeline } from "node:stream";
import { fail, forwardedFields, originOf, serve } from "./server.mjs";

/** What one writes without a library. */
const agent = new http.Agent({ keepAlive: true, maxFreeSockets: 64 });
const ignore = () => undefined;

serve((request, response) => {
  const { method, headers, url } = request;
  const options = { agent, method, headers: { ...headers, ...forwardedFields(request) } };
  const out = http.request(`${originOf(url)}${url}`, options, (incoming) => {
    response.writeHead(incoming.statusCode, incoming.headers);
    pipeline(incoming, response, ignore);
  });
  out.on("error", () => fail(response));
  pipeline(request, out, ignore);
});
