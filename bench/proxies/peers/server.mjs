import { readFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";

/** What every Node peer is told: `BENCH_PEER` holds port, upstream ports, TLS files and the keep-alive time. */
export const settings = JSON.parse(process.env.BENCH_PEER);

const { web, files, dav } = settings.upstreams;
const origins = {
  web: `http://127.0.0.1:${web}`,
  files: `http://127.0.0.1:${files}`,
  dav: `http://127.0.0.1:${dav}`,
};

/** All upstreams' origins. */
export const allOrigins = Object.values(origins);

/** Origin of the upstream that a path belongs to. */
export function originOf(url) {
  if (url.startsWith("/synchttp")) return origins.files;
  return url.startsWith("/syncdav") ? origins.dav : origins.web;
}

export function tlsOptions() {
  const { certificate, key, dhparam } = settings.tls;
  return {
    cert: readFileSync(certificate),
    key: readFileSync(key),
    dhparam: readFileSync(dhparam),
    minVersion: "TLSv1.2",
    maxVersion: "TLSv1.2",
    ecdhCurve: "secp384r1",
    ciphers: "EECDH+AESGCM:EDH+AESGCM",
    honorCipherOrder: true,
  };
}

/** The header fields that a proxy has to set (service 4.2). */
export function forwardedFields(request) {
  const address = request.socket.remoteAddress;
  const chain = request.headers["x-forwarded-for"];
  return {
    "x-real-ip": address,
    "x-forwarded-for": chain === undefined ? address : `${chain}, ${address}`,
    "x-forwarded-host": "127.0.0.1",
    ...(settings.mode === "tls" ? { "x-forwarded-proto": "https" } : {}),
  };
}

/** Serves as a user of these libraries would, with node:http or node:https. */
export function serve(handler) {
  const server =
    settings.mode === "tls" ? https.createServer(tlsOptions(), handler) : http.createServer(handler);
  server.keepAliveTimeout = settings.keepAliveSeconds * 1000;
  server.requestTimeout = 0;
  server.listen(settings.port, "127.0.0.1", 4096);
  return server;
}

export function fail(response) {
  if (response.headersSent) response.destroy();
  else response.writeHead(502).end();
}
