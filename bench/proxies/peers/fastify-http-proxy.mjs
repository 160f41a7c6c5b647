import proxy from "@fastify/http-proxy";
import fastify from "fastify";
import { forwardedFields, originOf, settings, tlsOptions } from "./server.mjs";

const app = fastify({
  https: settings.mode === "tls" ? tlsOptions() : null,
  keepAliveTimeout: settings.keepAliveSeconds * 1000,
  bodyLimit: Number.MAX_SAFE_INTEGER,
});
const rewriteRequestHeaders = (request, headers) => ({ ...headers, ...forwardedFields(request) });
for (const prefix of ["/sync", "/synchttp", "/syncdav"]) {
  app.register(proxy, {
    upstream: originOf(prefix),
    prefix,
    rewritePrefix: prefix,
    replyOptions: { rewriteRequestHeaders },
    undici: { connections: 64 },
  });
}
await app.listen({ port: settings.port, host: "127.0.0.1" });
