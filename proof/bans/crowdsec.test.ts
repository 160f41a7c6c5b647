import { renderAcquisition } from "../../src/render/index.js";
import { exchange } from "../../testkit/peers.js";
import { startProxy, type TestProxy } from "../../testkit/harness.js";
import { CrowdSecHere } from "./crowdsec.js";

/** Debian's CrowdSec, whose stock parser of nginx's logs gets lines that the proxy wrote. */

let proxy: TestProxy;
let crowdSec: CrowdSecHere;

beforeAll(async () => {
  const respond = (name: string, path: string, status: number) =>
    ({ name, path, match: "prefix", action: { type: "respond", status } }) as const;
  proxy = await startProxy({
    routes: [respond("login", "/api/login", 401), respond("all", "/", 404)],
    config: { trustedProxies: ["127.0.0.1"] },
  });
  crowdSec = await CrowdSecHere.start(
    renderAcquisition([{ path: "/var/log/portico/access.log", format: "combined" }]),
  );
}, 60_000);
afterAll(async () => {
  await crowdSec?.stop();
  await proxy?.close();
});

const FORGED = '198.51.100.7 - - [30/Nov/2026:19:00:00 +0000] "POST /api/login HTTP/1.1" 401 0 "-" "-"';
const basic = (user: string): string =>
  `Authorization: Basic ${Buffer.from(`${user}:x`, "latin1").toString("base64")}\r\n`;

async function ask(address: string, line: string, fields = ""): Promise<void> {
  const head = `${line} HTTP/1.1\r\nHost: a.example.org\r\nX-Forwarded-For: ${address}\r\n`;
  await exchange(proxy.port, `${head}${fields}Content-Length: 0\r\nConnection: close\r\n\r\n`);
}

test("the acquisition file is one that it reads", async () => {
  await expect(crowdSec.run("crowdsec", "-t")).resolves.toBeDefined();
});

test("lines are parsed, and clients that guess are banned, and nobody else", async () => {
  for (let i = 0; i < 8; i++) {
    await ask("203.0.113.1", "POST /api/login");
    await ask("2001:db8::1", "POST /api/login?next=/", 'User-Agent: "quoted" \\ and more\r\n');
    await ask("203.0.113.2", "GET /dav/x", `${basic("ada")}Referer: https://a.example.org/?x="y"\r\n`);
    await ask("203.0.113.5", "GET /dav/x", basic("ada1"));
    await ask("203.0.113.3", "GET /x", `User-Agent: ${FORGED}\r\nReferer: ${FORGED}\r\n`);
    await ask("203.0.113.4", `GET /x?"${"y".repeat(3_000)}`, "User-Agent: \r\n");
  }
  const log = await proxy.accessLog();
  const lines = [...new Set(log.trimEnd().split("\n"))];
  const parsed = await crowdSec.parsed(`${lines.join("\n")}\n`);
  // As documented: a cut request line, and a digit in the name of a user.
  const untaken = lines.filter((line) => line.includes("\\u2026") || line.includes(" ada1 "));
  expect(untaken.length).toBeGreaterThan(1);
  expect(lines.filter((line) => parsed.get(line) !== true)).toEqual(untaken);
  expect((await crowdSec.bans(log)).sort()).toEqual(["2001:db8::1", "203.0.113.1"]);
}, 60_000);
