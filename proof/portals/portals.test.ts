import { setTimeout as sleep } from "node:timers/promises";
import { Access } from "../../src/constructs/index.js";
import { Browser } from "../../testkit/browser.js";
import { freePorts } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";
import { ask } from "../applications/ask.js";
import { DOMAIN, Household, type HouseholdOptions, TEXT } from "./household.js";
import { REFRESH_MS, startOauth2Proxy } from "./oauth2Proxy.js";
import { EMAIL, PASSWORD, Provider, USER } from "./provider.js";
import { type Convention, StandIn } from "./standIn.js";

/** A household behind a portal: a browser signs on once for all sites, and a sync client goes past with its own password. */

async function signOn(browser: Browser, household: Household, password: string): Promise<void> {
  const wanted = household.urlOf("wiki", "/page?a=b&c=%2F");
  await browser.open(wanted);
  expect(await browser.url()).not.toBe(wanted);
  await browser.type("#password", password);
  await browser.click("#go");
  await eventually(async () => (await browser.url()) === wanted, "to be back", { ms: 20_000 });
  // Signed on for the other site as well.
  await browser.open(household.urlOf("files"));
  expect(await browser.url()).toBe(household.urlOf("files"));
  expect(await browser.evaluate("return document.body.innerText")).toBe("inside");
}

async function syncs(household: Household): Promise<void> {
  expect(await household.sync()).toBe(TEXT);
  await expect(household.sync("wrong")).rejects.toThrow(/401/);
  // Its password opens nothing else.
  const authorization = `Basic ${Buffer.from("sync:password of the sync client").toString("base64")}`;
  const at = (path: string) =>
    ask(household.port, `files.${DOMAIN}`, "GET", path, { headers: { authorization, "remote-user": USER } });
  const before = household.got.length;
  for (const path of ["/", "/dav/..;/", "/dav/%2e%2e/", "/davx"])
    expect([302, 401, 403]).toContain((await at(path)).status);
  expect(household.got).toHaveLength(before);
}

const ends: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function startBoth(options: HouseholdOptions): Promise<[Household, Browser]> {
  const household = await Household.start(options);
  ends.push(() => household.stop());
  const browser = await Browser.start();
  ends.push(() => browser.stop());
  return [household, browser];
}

test.each<Convention>(["traefik", "nginx"])(
  "a stand-in by the convention of %s",
  async (convention) => {
    const portal = await StandIn.start(convention, DOMAIN);
    ends.push(() => portal.close());
    const forwardAuth = { url: `${portal.url}/verify`, convention, copyFields: ["Remote-User"] };
    const [household, browser] = await startBoth({ portalUrl: portal.url, access: { forwardAuth } });
    await signOn(browser, household, "right");
    expect(household.got.map((fields) => fields["remote-user"])).toEqual(household.got.map(() => USER));
    await syncs(household);
    expect(portal.odd).toEqual([]);
  },
  120_000,
);

test("oauth2-proxy, whose session is renewed while it is used", async () => {
  const provider = await Provider.start();
  ends.push(() => provider.close());
  const [port] = await freePorts(1);
  const url = `http://127.0.0.1:${port}`;
  ends.push(await startOauth2Proxy(port!, { issuer: provider.issuer, domain: `.${DOMAIN}` }));
  const access = Access.oauth2Proxy({ url });
  const [household, browser] = await startBoth({ portalUrl: url, access, portalPath: "/oauth2" });
  await signOn(browser, household, PASSWORD);
  const { "x-auth-request-user": user, "x-auth-request-email": email } = household.got[0]!;
  expect([user, email]).toEqual([USER, EMAIL]);
  await syncs(household);
  await sleep(REFRESH_MS);
  await browser.open(household.urlOf("wiki"));
  const renewed = provider.renewals;
  expect(renewed).toBeGreaterThan(0);
  // The cookie that it got is young: without it, the portal would renew again.
  await browser.open(household.urlOf("wiki"));
  expect([await browser.url(), provider.renewals]).toEqual([household.urlOf("wiki"), renewed]);
}, 120_000);
