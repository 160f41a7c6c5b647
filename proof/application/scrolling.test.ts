import { createHash, randomBytes } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Browser } from "../../testkit/browser.js";
import { issue } from "../../testkit/certificates.js";
import { everywhere, loopback, oneServer, writeCertificate } from "../../testkit/oneServer.js";
import { openFolder, Portico } from "../../testkit/portico.js";
import { freePort } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";

/**
 * A page with photos that is scrolled while a file is uploaded: Chromium cancels hundreds of requests a second, on the
 * HTTP/2 connection that the upload is on. No entry of `Application` with photos has limits of its own for this.
 */

const UPLOAD_BYTES = 40 * 1024 * 1024;
/** Photos that come into view, and go out of view before they are there: more than `keepAliveRequestsMax`. */
const PHOTOS = 1_800;
/** So few that a busy machine reaches it, too: beyond three seconds' worth the requests are slowed down. */
const RESETS_PER_SECOND_MAX = 100;
/** Longer than those of one view wait. */
const PHOTO_MS = 10_000;

const PAGE = `<!doctype html><title>photos</title><script>
const bytes = new Uint8Array(${UPLOAD_BYTES});
for (let at = 0; at < bytes.length; at += 65536) crypto.getRandomValues(bytes.subarray(at, at + 65536));
const hex = (digest) => [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
window.result = {};
async function upload() {
  const digest = hex(await crypto.subtle.digest("SHA-256", bytes));
  const response = await fetch("/upload", { method: "PUT", body: bytes });
  window.result.upload = { status: response.status, same: (await response.text()) === digest };
}
async function scroll() {
  for (let first = 0; first < ${PHOTOS}; first += 90) {
    const view = new AbortController();
    const photos = Array.from({ length: 90 }, (_, i) => fetch("/photo/" + (first + i), { signal: view.signal }));
    // They begin to arrive, and are no longer wanted.
    await Promise.all(photos);
    view.abort();
  }
  window.result.scrolled = true;
}
upload().catch((error) => (window.result.failed = String(error)));
scroll().catch((error) => (window.result.scrollFailed = String(error)));
</script>`;

let upstream: Server;
let portico: Portico;
let browser: Browser;
let port: number;
const uploads: number[] = [];
let cancelled = 0;
let afterScrolling: () => void = () => undefined;

beforeAll(async () => {
  const photo = randomBytes(300_000);
  upstream = createServer((request, response) => {
    if (request.url === "/") return void response.setHeader("Content-Type", "text/html").end(PAGE);
    if (request.url?.startsWith("/photo/")) {
      response.on("close", () => {
        if (!response.writableFinished && ++cancelled >= PHOTOS / 2) afterScrolling();
      });
      response.setHeader("Content-Type", "image/jpeg").writeHead(200, { "Content-Length": photo.length });
      response.write(photo.subarray(0, 100));
      return void setTimeout(() => response.end(photo.subarray(100)), PHOTO_MS).unref();
    }
    if (request.url !== "/upload") return void response.writeHead(404).end();
    const hash = createHash("sha256");
    // It goes on as long as the page is scrolled.
    afterScrolling = () => request.resume();
    let bytes = 0;
    request.on("data", (chunk: Buffer) => {
      hash.update(chunk);
      bytes += chunk.length;
      if (cancelled < PHOTOS / 2 && bytes > UPLOAD_BYTES / 4) request.pause();
    });
    request.on("close", () => uploads.push(bytes));
    request.on("end", () => response.end(hash.digest("hex")));
  });
  await new Promise<void>((done) => upstream.listen(0, "127.0.0.1", done));
  port = await freePort();
  const files = writeCertificate(openFolder(), await issue());
  portico = await Portico.start(
    oneServer({
      limits: { streamResetsPerSecondMax: RESETS_PER_SECOND_MAX },
      logs: { access: "off", error: { stream: "stderr" } },
      listeners: [loopback("https", port, files)],
      upstreams: [{ name: "app", url: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}` }],
      routes: [everywhere({ type: "proxy", upstream: "app" })],
    }),
  );
  browser = await Browser.start();
});
afterAll(async () => {
  await browser?.stop();
  await portico?.stop();
  upstream?.closeAllConnections();
  upstream?.close();
});

test("an upload is whole while hundreds of photos are cancelled on its connection", async () => {
  await browser.open(`https://127.0.0.1:${port}/`);
  type Result = { upload?: object; failed?: string; scrolled?: boolean; scrollFailed?: string };
  let result: Result = {};
  const isOver = async (): Promise<boolean> => {
    result = await browser.evaluate<Result>("return window.result");
    const { upload, failed, scrolled, scrollFailed } = result;
    return (scrolled ?? scrollFailed) !== undefined && (upload ?? failed) !== undefined;
  };
  await eventually(isOver, "for the upload and the scrolling", {
    everyMs: 200,
    seen: () => JSON.stringify(result),
  });
  expect(result).toEqual({ scrolled: true, upload: { status: 200, same: true } });
  // Not begun again after a cut either.
  expect(uploads).toEqual([UPLOAD_BYTES]);
  expect(cancelled).toBeGreaterThan(PHOTOS * 0.9);
  expect(portico.errors).not.toContain("too many streams");
});
