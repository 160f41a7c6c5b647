import http from "node:http";
import { createProxyServer } from "httpxy";
import { fail, forwardedFields, originOf, serve } from "./server.mjs";

const agent = new http.Agent({ keepAlive: true, maxFreeSockets: 64 });
const proxy = createProxyServer({ agent });
proxy.on("error", (_error, _request, response) => fail(response));

serve((request, response) => {
  proxy
    .web(request, response, { target: originOf(request.url), headers: forwardedFields(request) })
    .catch(() => fail(response));
});
