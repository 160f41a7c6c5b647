import fastProxy from "fast-proxy";
import { allOrigins, forwardedFields, originOf, serve } from "./server.mjs";

const byOrigin = new Map(
  allOrigins.map((base) => [base, fastProxy({ base, undici: { connections: 64 } }).proxy]),
);

serve((request, response) => {
  byOrigin.get(originOf(request.url))(request, response, request.url, {
    rewriteRequestHeaders: (_request, headers) => ({ ...headers, ...forwardedFields(request) }),
  });
});
