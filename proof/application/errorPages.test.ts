import { createServer } from "node:http";
import { Browser } from "../../testkit/browser.js";
import { everywhere, loopback, oneServer } from "../../testkit/oneServer.js";
import { Portico } from "../../testkit/portico.js";
import { freePort } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";

/** What a browser makes of an error page, and of what should not have got into one. */

const cleanups: (() => unknown)[] = [];
afterAll(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

const PAGE = `<!doctype html><title>{{status}}</title><meta http-equiv="refresh" content="2">
<style>h1 { color: rgb(1, 2, 3) }</style><h1>{{requestId}}</h1>
<script>document.title = "script"</script><img src="x" onerror="document.title = 'handler'">
<a href="javascript:document.title='link'">a</a>`;

test("a page is shown without its scripts, and makes way for the application that comes back", async () => {
  const [port, upstream] = [await freePort(), await freePort()];
  const portico = await Portico.start(
    oneServer({
      logs: { access: "off", error: "off" },
      listeners: [loopback("http", port)],
      upstreams: [{ name: "app", url: `http://127.0.0.1:${upstream}` }],
      routes: [everywhere({ type: "proxy", upstream: "app" })],
      server: { errorPages: [{ statuses: [502], html: PAGE }] },
    }),
  );
  cleanups.push(() => portico.stop());
  const browser = await Browser.start();
  cleanups.push(() => browser.stop());
  await browser.open(`http://127.0.0.1:${port}/`);
  const seen = await browser.evaluate<string[]>(
    "return [document.title, document.querySelector('h1').textContent, getComputedStyle(document.querySelector('h1')).color]",
  );
  expect(seen).toEqual(["502", expect.stringMatching(/^[0-9a-f]{16}$/), "rgb(1, 2, 3)"]);
  await browser.click("a");
  expect(await browser.title()).toBe("502");

  const application = createServer((_, response) => response.end("<!doctype html><title>back</title>"));
  application.listen(upstream, "127.0.0.1");
  cleanups.push(() => application.close());
  await eventually(async () => (await browser.title()) === "back", "for the application", { everyMs: 50 });
});
