import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { renderApplicationSettings } from "../../src/applications/index.js";
import type { UpstreamInput } from "../../src/model/index.js";
import { everywhere, logsIn, loopback, oneServer } from "../../testkit/oneServer.js";
import { killAll, openFolder, Portico } from "../../testkit/portico.js";
import { freePorts } from "../../testkit/ports.js";
import { type Application, startApplication } from "./application.js";

/** A Django site on two servers, each of which has its sessions in its own memory. */

const USER = { name: "ada", password: "correct horse battery" };
/** Enough that with either cookie both servers have some. */
const PEOPLE = 12;

let folder: string;
let port: number;
let ports: readonly number[];
let servers: Application[];

beforeAll(async () => {
  folder = openFolder();
  [port, ...ports] = (await freePorts(3)) as [number, ...number[]];
  servers = await Promise.all(ports.map(start));
});

afterAll(async () => {
  killAll();
  await Promise.all(servers.map((server) => server.stop()));
});

async function start(serverPort: number): Promise<Application> {
  const files = renderApplicationSettings({
    origins: [{ scheme: "http", host: "127.0.0.1", port }],
    pathPrefix: "sync",
    enableSettingsViaWeb: false,
    fileServerHost: "127.0.0.1",
    fileServerPort: 8082,
  });
  const items = files.find(({ name }) => name === "web-application-settings.py")!.text;
  const mediaDirectory = join(folder, "media");
  mkdirSync(mediaDirectory, { recursive: true });
  return startApplication({ port: serverPort, items, mediaDirectory, user: USER, sessionsInMemory: true });
}

async function serve(sticky: UpstreamInput["sticky"]): Promise<Portico> {
  return Portico.start(
    oneServer({
      workers: 2,
      logs: logsIn(folder),
      listeners: [loopback("http", port)],
      upstreams: [{ name: "web", servers: ports.map((one) => ({ url: `http://127.0.0.1:${one}` })), sticky }],
      routes: [everywhere({ type: "proxy", upstream: "web" })],
    }),
  );
}

/** A browser as far as it matters here: it keeps cookies. */
class Person {
  readonly cookies = new Map<string, string>();

  async ask(path: string, form?: Record<string, string>): Promise<{ status: number; text: string }> {
    const Cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      headers: { Cookie },
      redirect: "manual",
      ...(form === undefined ? {} : { method: "POST", body: new URLSearchParams(form) }),
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [pair] = cookie.split(";") as [string];
      this.cookies.set(pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1));
    }
    return { status: response.status, text: await response.text() };
  }

  async logIn(): Promise<void> {
    const path = "/sync/accounts/login/";
    const page = await this.ask(path);
    const token = /name="csrfmiddlewaretoken" value="([^"]+)"/.exec(page.text)![1]!;
    const { name: username, password } = USER;
    const response = await this.ask(path, { username, password, csrfmiddlewaretoken: token });
    expect(response.status).toBe(302);
  }

  async isLoggedIn(): Promise<boolean> {
    const { status, text } = await this.ask("/sync/");
    return status === 200 && text.includes("ada on ");
  }
}

const counted = async (people: readonly Person[]): Promise<number> => {
  const each = await Promise.all(people.map((one) => one.isLoggedIn()));
  return each.filter(Boolean).length;
};

test("with the proxy's cookie a log-in holds while the other server restarts; one's own restart forgets it", async () => {
  const portico = await serve({ cookie: "portico_web" });
  const people = Array.from({ length: PEOPLE }, () => new Person());
  for (const one of people) await one.logIn();
  const names = [...new Set(people.map(({ cookies }) => cookies.get("portico_web")))];
  expect(names).toHaveLength(2);
  expect(await counted(people)).toBe(PEOPLE);

  // Who stays logged in while the first one is away was at the second.
  await servers[0]!.stop();
  const still = await Promise.all(people.map((one) => one.isLoggedIn()));
  const others = people.filter((_, i) => still[i]);
  expect(others.length).toBeGreaterThan(0);
  expect(others.length).toBeLessThan(PEOPLE);
  const restarted = start(ports[0]!);
  let over = false;
  void restarted.then(() => (over = true));
  let looks = 0;
  for (; !over || looks < 3; looks++) {
    expect(await counted(others)).toBe(others.length);
    await sleep(50);
  }
  servers[0] = await restarted;
  // The server that they are bound to now has never known their sessions.
  expect(await counted(people)).toBe(others.length);
  await people.find((one) => !others.includes(one))!.logIn();
  expect(await counted(people)).toBe(others.length + 1);
  await portico.stop();
});

test("with the application's cookie a log-in does not hold: another server than its own may be the one of its hash", async () => {
  const portico = await serve({ applicationCookie: "sessionid" });
  const people = Array.from({ length: PEOPLE }, () => new Person());
  let lost = 0;
  for (const one of people) {
    // The form comes from one server and is sent to another: their tokens are in a cookie, and hold at both.
    await one.logIn();
    if (!(await one.isLoggedIn())) lost++;
  }
  expect(lost).toBeGreaterThan(0);
  await portico.stop();
});
