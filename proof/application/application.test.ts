import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { renderApplicationSettings } from "../../src/applications/index.js";
import { type Application, startApplication } from "./application.js";
import { Browser } from "../../testkit/browser.js";
import { type FrontEnd, startFrontEnd } from "../../testkit/frontEnd.js";
import { freePort } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";

/** A real application behind the front end, and a real browser in front of it. */

const USER = { name: "ada", password: "correct horse battery" };
/** One transparent pixel. */
const IMAGE = Buffer.from("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7", "base64");

/** Each look is a question to the browser. */
const SELDOM = { everyMs: 50 };

let frontEnd: FrontEnd;
let application: Application;
let browser: Browser;
let folder: string;
const cleanups: (() => unknown)[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "portico-browser-"));
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
  const port = await freePort();
  frontEnd = await startFrontEnd({
    upstreams: { web: port, fileServer: port, webdav: port },
    proxy: { trustedProxies: ["127.0.0.1"] },
    passwordGuard: {},
  });
  cleanups.push(() => frontEnd.stop());
  application = await startApplication({
    port,
    items: settingsFor(frontEnd.tlsPort),
    mediaDirectory: join(frontEnd.folder, "media"),
    user: USER,
  });
  cleanups.push(() => application.stop());
  browser = await Browser.start();
  cleanups.push(() => browser.stop());
});

afterAll(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

/** What a deployment writes for the application's settings file, were these ports public. */
function settingsFor(port: number): string {
  const files = renderApplicationSettings({
    origins: [{ scheme: "https", host: "127.0.0.1", port }],
    pathPrefix: "sync",
    enableSettingsViaWeb: false,
    fileServerHost: "127.0.0.1",
    fileServerPort: 8082,
  });
  return files.find(({ name }) => name === "web-application-settings.py")!.text;
}

test("a browser logs in over TLS, uploads a file, and sees it come from the media directory", async () => {
  const origin = `https://127.0.0.1:${frontEnd.tlsPort}`;
  await browser.open(`${origin}/sync/`);
  expect(await browser.url()).toBe(`${origin}/sync/accounts/login/?next=/sync/`);
  await browser.type("input[name=username]", USER.name);
  await browser.type("input[name=password]", USER.password);
  await browser.click("#send");
  await arrivedAt(`${origin}/sync/`);
  // The host that was asked for, port included, and the scheme arrive; else Django's CSRF check had refused the login.
  expect(await browser.title()).toBe(`ada on 127.0.0.1:${frontEnd.tlsPort}, secure`);

  const file = join(folder, "pixel.gif");
  writeFileSync(file, IMAGE);
  await browser.type("input[name=file]", file);
  await browser.click("#send");
  await eventually(
    async () => (await browser.evaluate<number>("return document.images.length")) > 0,
    "for the page with the image",
    SELDOM,
  );
  expect(await browser.url()).toBe(`${origin}/sync/`);
  const image = await browser.evaluate<{ src: string; width: number }>(
    "const i = document.images[0]; return { src: i.src, width: i.complete ? i.naturalWidth : -1 };",
  );
  expect(image).toEqual({ src: `${origin}/syncmedia/avatars/pixel.gif`, width: 1 });
  const type = await browser.evaluate<string>(
    "return fetch('/syncmedia/avatars/pixel.gif').then((r) => [r.status, r.headers.get('content-type'), r.headers.get('server')].join(' '))",
  );
  expect(type).toBe("200 image/gif portico");
  const protocol = await browser.evaluate<string>(
    "return performance.getEntriesByType('navigation')[0].nextHopProtocol",
  );
  expect(protocol).toBe("h2");
});

/** As many requests as a program sends in a window of the guard, with five a second. */
const WITH_OLD_PASSWORD = 4_500;

test("the same wrong password, as long as a window, limits nobody at the address: not its program, nor a browser", async () => {
  const login = `http://127.0.0.1:${frontEnd.plainPort}/sync/accounts/login/`;
  const statuses: Record<number, number> = {};
  let isOver = false;
  const page = await fetch(login);
  const cookie = page.headers
    .getSetCookie()
    .map((one) => one.split(";")[0])
    .join("; ");
  const csrfmiddlewaretoken = /name="csrfmiddlewaretoken" value="([^"]+)"/.exec(await page.text())![1]!;
  const tries = async (password: string, from: string): Promise<number> => {
    // Django hashes nothing without a name, and so responds as fast as this needs.
    const body = new URLSearchParams({ csrfmiddlewaretoken, username: "", password });
    const response = await fetch(login, {
      method: "POST",
      headers: { cookie, "x-forwarded-for": from },
      body,
    });
    await response.arrayBuffer();
    return response.status;
  };
  const program = async (): Promise<void> => {
    for (let sent = 0; sent < WITH_OLD_PASSWORD || !isOver; sent++) {
      const status = await tries("old password", "127.0.0.1");
      statuses[status] = (statuses[status] ?? 0) + 1;
    }
  };
  const running = program();
  const origin = `https://127.0.0.1:${frontEnd.tlsPort}`;
  await eventually(() => (statuses[200] ?? 0) > 100, "for the program");
  for (let round = 0; round < 3; round++) {
    await browser.deleteCookies();
    await browser.open(`${origin}/sync/`);
    await browser.type("input[name=username]", USER.name);
    await browser.type("input[name=password]", USER.password);
    await browser.click("#send");
    await arrivedAt(`${origin}/sync/`);
    expect(await browser.title()).toBe(`ada on 127.0.0.1:${frontEnd.tlsPort}, secure`);
  }
  isOver = true;
  await running;
  expect(Object.keys(statuses)).toEqual(["200"]);
  const guesses: number[] = [];
  for (let i = 0; i < 30; i++) guesses.push(await tries(`guess ${i}`, "203.0.113.9"));
  expect([guesses[0], guesses.at(-1)]).toEqual([200, 429]);
});

test("a form is taken from the site itself with its token, and from nowhere else", async () => {
  const site = `https://127.0.0.1:${frontEnd.tlsPort}/sync/`;
  await browser.open(site);
  const token = await browser.evaluate<string>("return document.forms[0].csrfmiddlewaretoken.value");
  const post = (fields: string): Promise<number> =>
    browser.evaluate(`const form = new FormData();
      form.append("file", new File(["GIF89a"], "posted.gif"));
      ${fields}
      return fetch("/sync/", { method: "POST", body: form }).then((r) => r.status);`);
  const withToken = `form.append("csrfmiddlewaretoken", ${JSON.stringify(token)});`;
  expect(await post(withToken)).toBe(200);
  expect(await post("")).toBe(403);
  // Another port of the same host: the browser sends the cookies along, and only Origin and Referer tell.
  await browser.open(await foreignPage(site, token));
  await browser.click("#send");
  await arrivedAt(site);
  expect(await browser.title()).toBe("403 Forbidden");
});

/** A click may return before the browser leaves the page. */
const arrivedAt = (url: string): Promise<void> =>
  eventually(
    async () => (await browser.url()) === url && (await browser.title()) !== "",
    `to arrive at ${url}`,
    SELDOM,
  );

/** A page of another origin with a form that goes to the site, token included. @returns its URL */
async function foreignPage(site: string, token: string): Promise<string> {
  const page = `<!DOCTYPE html><form method="post" action="${site}" enctype="multipart/form-data">
<input type="hidden" name="csrfmiddlewaretoken" value="${token}"><button id="send">Send</button></form>`;
  const tls = (name: string): Buffer => readFileSync(join(frontEnd.folder, name));
  const server = createServer({ cert: tls("cacert.pem"), key: tls("privkey.pem") }, (_request, response) =>
    response.setHeader("Content-Type", "text/html").end(page),
  ).listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanups.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}
