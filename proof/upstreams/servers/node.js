// The application of the tests on Node's own server; wsgi.py describes its responses.
const { createHash } = require("node:crypto");
const { statSync } = require("node:fs");
const { createServer } = require("node:http");
const { setTimeout: sleep } = require("node:timers/promises");
const { once } = require("node:events");

const ACTIONS = {
  async answer(query, _request, response) {
    await sleep(Number(query.get("ms")));
    response.end(`response of ${query.get("id")}`);
  },
  async text(query, _request, response) {
    const text = query.get("text");
    if (query.get("code") === "302") response.setHeader("Location", "/elsewhere");
    if (query.get("framing") === "length") response.setHeader("Content-Length", text.length);
    response.writeHead(Number(query.get("code"))).flushHeaders();
    await sleep(Number(query.get("ms")));
    response.end(text);
  },
  async upload(_query, request, response) {
    const hash = createHash("sha256");
    let size = 0;
    for await (const piece of request) {
      hash.update(piece);
      size += piece.length;
    }
    response.end(`${size} ${hash.digest("hex")}`);
  },
  async refuse(_query, _request, response) {
    response.writeHead(413).end("too large");
  },
  async download(query, _request, response) {
    const size = Number(query.get("size"));
    response.setHeader("Content-Length", size);
    const block = Buffer.from(Array.from({ length: 65536 }, (_, i) => i % 251));
    for (let at = 0; at < size; at += block.length) {
      if (!response.write(block.subarray(0, size - at))) await once(response, "drain");
    }
    response.end();
  },
  async pieces(query, _request, response) {
    for (let i = 0; i < Number(query.get("count")); i++) {
      await sleep(Number(query.get("ms")));
      const arrived = () => !query.has("seen") || statSync(query.get("seen")).size >= i;
      for (let look = 0; look < 2_000 && !arrived(); look++) await sleep(5);
      response.write(`piece ${i}\n`);
    }
    response.end();
  },
  async hints(_query, _request, response) {
    response.writeEarlyHints({ link: "</style.css>; rel=preload" });
    response.writeProcessing();
    response.end("after hints");
  },
};

const [, , port, keptSeconds] = process.argv;
// Newer releases wait a second longer than they say.
const keepAliveTimeout = Number(keptSeconds) * 1000;

createServer({ keepAliveTimeout }, (request, response) => {
  const { pathname, searchParams } = new URL(request.url, "http://localhost");
  const action = ACTIONS[pathname.slice(pathname.lastIndexOf("/") + 1)];
  if (action === undefined) response.writeHead(404).end();
  // The client may leave at any time.
  else action(searchParams, request, response).catch(() => response.destroy());
}).listen(Number(port), "127.0.0.1");
