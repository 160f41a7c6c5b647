import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/**
 * An upstream that takes every password for wrong below `/syncdav`, and responds to all else. It prints the port that it
 * chose; `/sync/seen` says which passwords it saw, and forgets them.
 */

/** Distinct secrets by the client that the proxy names. */
const guesses = new Map<string, Set<string>>();

const server = createServer(({ url = "", headers }, response) => {
  if (url === "/sync/seen") {
    const counts = [...guesses.values()].map(({ size }) => size);
    const seen = {
      addresses: counts.length,
      most: Math.max(0, ...counts),
      least: Math.min(...counts, Infinity),
    };
    guesses.clear();
    return void response.end(JSON.stringify(seen));
  }
  const { authorization } = headers;
  if (authorization === undefined) return void response.end("ok");
  const client = String(headers["x-real-ip"]);
  const known = guesses.get(client) ?? new Set();
  guesses.set(client, known.add(authorization));
  response.writeHead(401, { "WWW-Authenticate": 'Basic realm="files"' }).end();
}).listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port));
