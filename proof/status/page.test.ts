import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ProxyConfigInput } from "../../src/model/index.js";
import { partOfQuery } from "../../src/runtime/status/asked.js";
import { statusResponse } from "../../src/runtime/status/site.js";
import { issue } from "../../testkit/certificates.js";
import { Browser } from "../../testkit/browser.js";
import { loopback, oneServer, writeCertificate } from "../../testkit/oneServer.js";
import { openFolder, Portico } from "../../testkit/portico.js";
import { manySites } from "../../testkit/overviews.js";
import { freePorts } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";
import { randomText } from "../../testkit/random.js";

/**
 * The status page in a browser, while things happen behind it. With UPDATE_SCREENSHOTS=1 it makes the pictures of the
 * docs; pngquant makes them small enough for the package.
 */

const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const SLOW = { everyMs: 100 };

let portico: Portico;
let browser: Browser;
let config: ProxyConfigInput;
let web: Server;
let files: readonly [Server, Server];
let port: number;
const sockets = new Set<Socket>();

beforeAll(async () => {
  const [http, https, webPort, first, second] = await freePorts(5);
  port = http!;
  web = await serverAt(webPort!);
  files = [await serverAt(first!), await serverAt(second!)];
  const tls = writeCertificate(openFolder(), await issue({ type: "rsa", names: ["files.example.org"] }));
  config = oneServer({
    workers: 2,
    logs: { access: "off", error: "off" },
    listeners: [loopback("http", http!), loopback("https", https!, tls)],
    upstreams: [
      { name: "web", url: `http://127.0.0.1:${webPort}` },
      {
        name: "files",
        servers: [{ url: `http://127.0.0.1:${first}` }, { url: `http://127.0.0.1:${second}` }],
        // One check that is late on a busy machine means nothing.
        health: { path: "/", intervalMs: 500, fall: 3, rise: 1 },
      },
    ],
    routes: [
      { name: "web", path: "/sync", action: { type: "proxy", upstream: "web" } },
      { name: "files", path: "/synchttp", action: { type: "proxy", upstream: "files", strip: "raw" } },
      { name: "status", path: "/status", action: { type: "status", allow: ["127.0.0.1"], fileNames: true } },
    ],
  });
  portico = await Portico.start(config);
  expect(portico.errors).toBe("");
  browser = await Browser.start();
  await browser.showAs({ width: 1_080, height: 900, dark: false });
  await browser.open(`http://127.0.0.1:${port}/status`);
});

afterAll(async () => {
  await browser.stop();
  for (const socket of sockets) socket.destroy();
  await portico.stop();
  for (const server of [web, ...files]) {
    server.closeAllConnections();
    server.close();
  }
});

/** Responds at once, but `/held` only begins to: as many bytes as it can, of many more. */
function serverAt(at: number): Promise<Server> {
  const server = createServer((request, response) => {
    request.resume();
    if (!request.url!.includes("held")) return void request.on("end", () => response.end("ok"));
    response.writeHead(200, { "content-length": 1e9 });
    response.write(Buffer.alloc(200_000));
  });
  return new Promise((resolve) => server.listen(at, "127.0.0.1", () => resolve(server)));
}

/** A client that has sent a head, and perhaps some of a body. */
function client(head: string, body = ""): Socket {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => undefined).resume();
  const fields = "Host: files.example.org\r\nUser-Agent: rclone/v1.68.1\r\n";
  socket.write(`${head}\r\n${fields}${body === "" ? "" : "Content-Length: 4000000\r\n"}\r\n${body}`);
  sockets.add(socket);
  return socket;
}

const shown = <T>(script: string): Promise<T> => browser.evaluate<T>(`return ${script}`);
const text = (): Promise<string> => shown<string>("document.body.innerText");

async function violations(): Promise<unknown[]> {
  return browser.evaluate(
    `${AXE}; return axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ": " + nodes.map(({ html }) => html.slice(0, 200)).join(" | ")))`,
  );
}

test("an upload's bar moves, without a reload of the page", async () => {
  await browser.evaluate("window.same = true");
  const upload = client(
    "PUT /synchttp/upload/3f2a9c0b7d5e41a88c6e/holiday.mp4?token=secret HTTP/1.1",
    randomText(1_000_000),
  );
  const bar = (): Promise<number> => shown("+(document.querySelector('progress')?.value ?? -1)");
  await eventually(async () => (await bar()) === 25, "for a quarter", SLOW);
  expect(await shown("document.querySelector('progress').ariaLabel")).toBe("Upload of holiday.mp4");
  upload.write(randomText(2_000_000));
  await eventually(async () => (await bar()) === 75, "for three quarters", SLOW);
  expect(await text()).toContain("/synchttp/…/holiday.mp4");
  expect(await text()).toContain("rclone/v1.68.1");
  expect(await browser.evaluate<string>("return document.documentElement.outerHTML")).not.toMatch(
    /3f2a9c0b|secret/,
  );
  upload.write(randomText(1_000_000));
  await eventually(async () => (await bar()) === -1, "for its end", SLOW);
  expect(await shown("window.same")).toBe(true);
});

test("a server that goes down shows, and one that comes back", async () => {
  const standing = (): Promise<string> => shown("document.querySelector('#standing').innerText");
  expect(await standing()).toBe("No trouble is known; no request has reached 1 upstream server so far.");
  expect(await text()).toContain("not asked yet");
  client("GET /sync HTTP/1.1");
  await eventually(async () => (await standing()) === "All is well.", "for the first response", SLOW);
  const at = (files[1].address() as { port: number }).port;
  files[1].closeAllConnections();
  await new Promise((resolve) => files[1].close(resolve));
  await eventually(
    async () => (await standing()).includes(`its server http://127.0.0.1:${at} is down`),
    "for it to be down",
    SLOW,
  );
  expect(await shown("document.querySelectorAll('.topology .trouble').length")).toBe(1);
  expect(await shown("document.title")).toBe("Portico: 1 trouble");
  files = [files[0], await serverAt(at)];
  await eventually(async () => (await standing()) === "All is well.", "for it to be up", SLOW);
});

test("a reload shows, and one that is refused with its fix", async () => {
  portico.rewrite({ ...config, workers: 1 });
  portico.signal("SIGHUP");
  await eventually(async () => (await text()).includes("configuration reloaded"), "for the reload", SLOW);
  await eventually(
    async () => /generation 2, 1 worker\n/.test(await text()),
    "for the workers of before to go",
    SLOW,
  );
  portico.rewrite({ ...config, upstreams: [] });
  portico.signal("SIGHUP");
  await eventually(async () => (await text()).includes("Reload refused"), "for the refusal", SLOW);
  expect(await text()).toContain("virtualServers[0].routes[0].action.upstream");
  portico.rewrite(config);
  portico.signal("SIGHUP");
  await eventually(async () => (await text()).includes("All is well."), "for the next one", SLOW);
});

test("the page holds at 200 transfers", async () => {
  for (let i = 0; i < 200; i++) client(`GET /synchttp/held/file-${i}.bin HTTP/1.1`);
  const rows = (): Promise<number> => shown("document.querySelectorAll('tbody progress').length");
  const count = (): Promise<string> => shown("document.querySelector('.count').innerText");
  await eventually(async () => (await count()) === "200", "for all of them", SLOW);
  // A worker tells of 100 one by one; the page draws them after their number.
  await eventually(async () => (await rows()) >= 100, "for their rows", SLOW);
  const before = await shown("document.querySelector('#updated').innerText");
  await eventually(
    async () => (await shown("document.querySelector('#updated').innerText")) !== before,
    "for a newer one",
    SLOW,
  );
  for (const socket of sockets) socket.destroy();
  sockets.clear();
  await eventually(async () => (await count()) === "0", "for none of them", SLOW);
});

describe.each([
  ["light", false],
  ["dark", true],
])("%s", (_, dark) => {
  test.each([1_080, 390])("%i pixels wide: nothing overflows, and axe finds no fault", async (width) => {
    client("PUT /synchttp/a/holiday.mp4 HTTP/1.1", randomText(1_500_000));
    await browser.showAs({ width, height: 900, dark });
    await eventually(async () => (await text()).includes("holiday.mp4"), "for the upload", SLOW);
    expect(await violations()).toEqual([]);
    expect(await shown("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    for (const socket of sockets) socket.destroy();
  });
});

describe("many sites", () => {
  let page: Server;
  let word = "";
  beforeAll(async () => {
    page = createServer(async (request, response) => {
      const part = partOfQuery(request.url!.slice(2)) ?? "page";
      const asked = { part, addresses: "whole", fileNames: true } as const;
      const { contentType, body } = await statusResponse(asked, () =>
        Promise.resolve(manySites(SITES, word)),
      );
      response.writeHead(200, { "content-type": contentType }).end(body);
    }).listen(0, "127.0.0.1");
    await once(page, "listening");
    await browser.open(`http://127.0.0.1:${(page.address() as AddressInfo).port}/`);
  });
  afterAll(async () => {
    page.close();
    await browser.open(`http://127.0.0.1:${port}/status`);
  });

  test.each([1_400, 1_000, 800, 390])("%i pixels wide: no short word is broken", async (width) => {
    await browser.showAs({ width, height: 900, dark: false });
    expect(await browser.evaluate<string[]>(BROKEN_WORDS)).toEqual([]);
    expect(await shown("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
  });

  test.each([1_080, 390])("%i pixels wide: long words do not stick out", async (width) => {
    word = "x".repeat(200);
    await browser.showAs({ width, height: 900, dark: false });
    await eventually(async () => (await text()).includes(word), "for the words", SLOW);
    expect(await shown("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
  });

  test("the map is folded, and stays as its reader leaves it", async () => {
    const visible = (): Promise<unknown> => shown("document.querySelector('.topology').checkVisibility()");
    expect(await visible()).toBe(false);
    await browser.click("summary");
    const updated = await shown("document.querySelector('#updated').innerText");
    await eventually(
      async () => (await shown("document.querySelector('#updated').innerText")) !== updated,
      "for an update",
      SLOW,
    );
    expect(await visible()).toBe(true);
  });
});

/** Words of tables that stand on more than one line, though any column has room for them. */
const BROKEN_WORDS = `
  const broken = [], range = document.createRange();
  // A narrow window hides the heads of columns from the eye.
  for (const table of document.querySelectorAll(innerWidth > 640 ? "table" : "tbody"))
    for (const texts = document.createTreeWalker(table, NodeFilter.SHOW_TEXT); texts.nextNode(); )
      for (const { 0: word, index } of texts.currentNode.data.matchAll(/[\\w.]{1,24}(?![\\w.])/g)) {
        range.setStart(texts.currentNode, index);
        range.setEnd(texts.currentNode, index + word.length);
        if (new Set([...range.getClientRects()].map(({ top }) => top)).size > 1) broken.push(word);
      }
  return broken;`;
const SITES = 31;

test("keyboard: the picture can be scrolled, its words opened, updates stopped", async () => {
  await browser.showAs({ width: 1_080, height: 900, dark: false });
  const reached = await browser.evaluate<string[]>(
    "return [...document.querySelectorAll('[tabindex=\"0\"], summary, button')].map((one) => { one.focus(); return document.activeElement.localName; })",
  );
  expect(reached).toEqual(["div", "summary", "button"]);
  await browser.click("button");
  expect(await shown("document.querySelector('button').innerText")).toBe("Go on with updates");
  const updated = await shown("document.querySelector('#updated').innerText");
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  expect(await shown("document.querySelector('#updated').innerText")).toBe(updated);
  await browser.click("button");
  await eventually(
    async () => (await shown("document.querySelector('#updated').innerText")) !== updated,
    "for updates",
    SLOW,
  );
});

test("a proxy that is not reached is said to be", async () => {
  await portico.stop();
  await eventually(
    async () => (await text()).includes("not reached since then"),
    "for the page to say so",
    SLOW,
  );
  portico = await Portico.start(config);
  await eventually(async () => !(await text()).includes("not reached since then"), "for it to be back", SLOW);
});

if (process.env.UPDATE_SCREENSHOTS !== undefined) test("the pictures of the docs", makePictures);

async function makePictures(): Promise<void> {
  const moving = [
    client("PUT /synchttp/up/holiday.mp4 HTTP/1.1", randomText(1_400_000)),
    client("PUT /synchttp/up/minutes.odt HTTP/1.1", randomText(100_000)),
    client("GET /synchttp/held/backup.tar.zst HTTP/1.1"),
  ];
  for (let i = 0; i < 30; i++) {
    moving[0]!.write(randomText(50_000 + ((i * 7) % 11) * 3_000));
    moving[1]!.write(randomText(25_000));
    const requests = Array.from({ length: 3 + ((i * 7) % 11) }, () =>
      fetch(`http://127.0.0.1:${port}/sync/`),
    );
    await Promise.all(requests);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
  await browser.evaluate("document.activeElement.blur()");
  const folder = join(__dirname, "../../docs/images");
  mkdirSync(folder, { recursive: true });
  await eventually(async () => (await text()).includes("minutes.odt"), "for the transfers", SLOW);
  for (const [name, width, dark] of [
    ["status.png", 1_000, false],
    ["status-phone.png", 390, true],
  ] as const) {
    await browser.showAs({ width, dark });
    writeFileSync(join(folder, name), await browser.screenshot());
  }
  for (const socket of moving) socket.destroy();
}
