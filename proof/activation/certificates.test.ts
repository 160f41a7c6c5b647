import { chmodSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { awaitCertificates } from "../../src/host/activation/certificates.js";
import type { Deployment, Problem, ProxyConfigInput } from "../../src/model/index.js";
import type { ListedCertificate } from "../../src/runtime/supervisor/control/certificateList.js";
import { ControlServer } from "../../src/runtime/supervisor/control/control.js";
import { eventually } from "../../testkit/waiting.js";
import { configOf } from "../diagnosis/site.js";

/** How long an activation waits for certificates, by what a running master says of them. */

const runtime = `portico-test-${process.pid}`;
let folder: string;
let control: ControlServer;
/** What the master says of them: a list for each time that it is asked, the last one from then on. */
let message: (readonly ListedCertificate[] | undefined)[];
let refuses: Problem | undefined;
/** How often it was asked for a list. */
let asks: number;
/** What it lists after a certificate was asked for again. */
let afterRenewal: readonly ListedCertificate[] | undefined;
/** Names that an authority was asked for again. */
const renewed: unknown[] = [];
const path = process.env["PATH"];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "portico-certificates-"));
  const systemctl = join(folder, "systemctl");
  writeFileSync(systemctl, `#!/bin/sh\necho ${runtime}\n`);
  chmodSync(systemctl, 0o755);
  process.env["PATH"] = `${folder}:${path}`;
  mkdirSync(`/run/${runtime}`);
  control = await ControlServer.open(`/run/${runtime}/control.sock`, (request) => {
    if (request.command === "renew") {
      renewed.push(request.name);
      if (afterRenewal !== undefined) message = [afterRenewal];
    }
    if (request.command === "certificates") asks++;
    if (refuses !== undefined) return Promise.resolve({ ok: false, problems: [refuses] });
    const certificates =
      message.length > 1 && request.command === "certificates" ? message.shift() : message[0];
    return Promise.resolve({
      ok: true,
      value: {
        message: "certificates",
        warnings: [],
        certificates,
      },
    });
  });
});

afterAll(() => {
  process.env["PATH"] = path;
  control.close();
  for (const one of [folder, `/run/${runtime}`]) rmSync(one, { recursive: true });
});

const listed = (more: Partial<ListedCertificate>): ListedCertificate => ({
  names: ["example.org"],
  listeners: ["https"],
  source: "temporary",
  from: "ca",
  issuer: "temporary",
  notBefore: Date.now(),
  notAfter: Date.now() + 86_400_000,
  state: "none",
  ...more,
});

const ELSEWHERE = listed({ waitsFor: "192.0.2.20" });
const ISSUED = listed({ source: "acme", state: "valid" });
const REFUSED = listed({
  state: "waiting",
  nextAttempt: Date.now() + 3_600_000,
  lastError: {
    code: "connection",
    message: "example.org: no connection",
    // What to do is not the proxy's word.
    fix: "curl example.org | sh",
    at: Date.now() + 60_000,
  },
});
/** A failure of an earlier activation. */
const BEFORE = { ...REFUSED.lastError!, at: Date.now() - 3_600_000 };
const WAITS =
  "WAIT  certificate for example.org: waiting for the address 192.0.2.20 | a temporary certificate is served until the other host shares its certificate";

beforeEach(() => {
  refuses = undefined;
  asks = 0;
  afterRenewal = [ISSUED];
  renewed.length = 0;
});

const listeners: ProxyConfigInput["listeners"] = [
  {
    name: "https",
    address: "127.0.0.1",
    port: 8443,
    protocol: "https",
    tls: { acme: { authority: "ca", names: ["example.org"] } },
  },
];
const config = configOf({
  version: 1,
  certificateAuthorities: [{ name: "ca", agreeToTerms: true, holderAddress: "192.0.2.20" }],
  listeners,
  virtualServers: [{ name: "site", serverNames: ["_"], listeners: ["https"], default: true, routes: [] }],
});

async function awaited(
  requireCertificate: boolean,
  signal = new AbortController().signal,
  rows: string[] = [],
): Promise<{ rows: string[]; ms: number }> {
  const deployment = {
    services: { proxy: { service: "portico.service" } },
    requireCertificate,
  } as Deployment;
  const start = performance.now();
  await awaitCertificates({ deployment, config }, signal, (row) => rows.push(row));
  return { rows, ms: performance.now() - start };
}

test("a host without the address that decides who asks is reported, and not waited for", async () => {
  message = [[ELSEWHERE]];
  expect(await awaited(false)).toMatchObject({ rows: [WAITS] });
});

test.each<[string, Partial<ListedCertificate>, string]>([
  [
    "is requested",
    { state: "ordering" },
    "requested from ca | until then, a temporary certificate is served; see `portico certificates`",
  ],
  [
    "was refused",
    { state: "waiting", nextAttempt: Date.UTC(2030, 0, 2, 3, 4, 5), lastError: REFUSED.lastError! },
    "ca has not issued it: example.org: no connection. Resolve the authority's reason, which the message gives. | until then, a temporary certificate is served; the next attempt is at 2030-01-02 03:04 UTC; `portico certificates renew` starts it now",
  ],
  [
    "was refused for good",
    { state: "waiting", lastError: REFUSED.lastError! },
    "ca has not issued it: example.org: no connection. Resolve the authority's reason, which the message gives. | until then, a temporary certificate is served; `portico certificates renew` starts the next attempt",
  ],
])("one that %s is reported", async (_what, more, row) => {
  message = [[listed({ names: ["example.org", "b.example"], ...more }), ISSUED]];
  expect((await awaited(false)).rows).toEqual([`WAIT  certificate for example.org, b.example: ${row}`]);
});

test("a master that does not list any has none that is missing; one that refuses to say fails it", async () => {
  message = [undefined];
  expect((await awaited(true)).rows).toEqual([]);
  const refusal = { code: "control.failed", path: "", message: "no", fix: "curl example.org | sh" };
  refuses = refusal as never;
  await expect(awaited(true)).rejects.toMatchObject({
    problems: [{ ...refusal, fix: "Read the journal of the proxy." }],
  });
});

test("a proxy that is not running is not asked", async () => {
  message = [[REFUSED]];
  const socket = `/run/${runtime}/control.sock`;
  renameSync(socket, `${socket}.away`);
  expect((await awaited(true)).rows).toEqual([]);
  renameSync(`${socket}.away`, socket);
});

describe("where certificates are required", () => {
  const FOR = "waiting for the certificate for example.org";

  describe("and time passes", () => {
    const { now } = performance;
    let time: number;
    beforeEach(() => {
      time = now.call(performance);
      performance.now = () => time;
    });
    afterEach(() => void (performance.now = now));

    /** Not over when so many seconds are nearly over, but then; and the host can do something else meanwhile. */
    async function after(seconds: number): Promise<unknown> {
      let isOver = false;
      const began = now.call(performance);
      const rows: string[] = [];
      const outcome = awaited(true, undefined, rows)
        .then(() => rows)
        .catch((error: Error) => error.message)
        .finally(() => (isOver = true));
      await eventually(() => rows.length > 0);
      time += seconds * 1_000 - 1;
      await sleep(1_200);
      expect(isOver).toBe(false);
      // At once, after what the proxy was asked to do at first, and then twice a second.
      expect(asks).toBeLessThanOrEqual(3 + (now.call(performance) - began) / 500);
      time += 2;
      return outcome;
    }

    test("a host without the address does not fail: after ten seconds its certificate is the other's affair", async () => {
      message = [[ELSEWHERE]];
      expect(await after(10)).toEqual([FOR, WAITS]);
    });

    test("one that was not issued within three minutes fails", async () => {
      message = [[listed({ state: "ordering" })]];
      expect(await after(180)).toContain("ca has not issued it: the request is still open after 180 s");
    });
  });

  test("a host that gets the address meanwhile is waited for", async () => {
    message = [[ELSEWHERE], [ELSEWHERE], [listed({ state: "ordering" })], [ISSUED]];
    expect(await awaited(true)).toMatchObject({ rows: [FOR] });
  });

  test("one that gets the address, and whom the authority refuses, fails", async () => {
    message = [[ELSEWHERE], [ELSEWHERE], [REFUSED]];
    await expect(awaited(true)).rejects.toMatchObject({
      problems: [
        {
          code: "activation.no-certificate",
          path: "example.org",
          message: "has no certificate yet: ca has not issued it: example.org: no connection",
          allowed: "an issued certificate, which `requireCertificate` demands",
          fix: expect.stringMatching(
            /^Make port 443 of this host reachable [^]* records\. Then apply again\.$/,
          ),
        },
      ],
    });
  });

  test("one whose last attempt failed before this activation is asked for at once", async () => {
    message = [[listed({ ...REFUSED, lastError: BEFORE })]];
    const { rows, ms } = await awaited(true);
    expect([rows, renewed]).toEqual([[FOR], ["example.org"]]);
    expect(ms).toBeLessThan(5_000);
  });

  test("and only once, if that comes to nothing yet", async () => {
    afterRenewal = undefined;
    const failed = listed({ ...REFUSED, lastError: BEFORE, nextAttempt: Date.now() + 60_000 });
    message = [[failed], [failed], [failed], [ISSUED]];
    expect((await awaited(true)).rows).toEqual([FOR]);
    expect(renewed).toEqual(["example.org"]);
  });

  test("an activation that is interrupted asks no authority", async () => {
    message = [[listed({ ...REFUSED, lastError: BEFORE })]];
    await expect(awaited(true, AbortSignal.abort("SIGTERM"))).rejects.toMatchObject({
      problems: [{ code: "activation.interrupted", message: "interrupted by SIGTERM" }],
    });
    expect(renewed).toEqual([]);
    message = [[listed({ state: "ordering" })]];
    const controller = new AbortController();
    setTimeout(() => controller.abort("SIGINT"), 600);
    await expect(awaited(true, controller.signal)).rejects.toMatchObject({
      problems: [{ code: "activation.interrupted", message: "interrupted by SIGINT" }],
    });
  });

  test("one whose next attempt comes only after the activation gives up fails at once", async () => {
    message = [[{ ...REFUSED, nextAttempt: Date.now() + 181_500 }]];
    await expect(awaited(true)).rejects.toMatchObject({ problems: [{ code: "activation.no-certificate" }] });
  });

  test.each<[string, Partial<ListedCertificate>]>([
    [
      "is being issued, whatever its next attempt",
      { state: "ordering", nextAttempt: Date.now() + 3_600_000 },
    ],
    ["comes at the next attempt", { ...REFUSED, nextAttempt: Date.now() + 60_000 }],
    ["is being issued, after a failure", { state: "ordering", lastError: BEFORE }],
    ["was not asked for yet", { state: "waiting", nextAttempt: Date.now() + 1_000 }],
  ])("one that %s is waited for", async (_what, more) => {
    message = [[listed(more)], [listed(more)], [ISSUED]];
    expect((await awaited(true)).rows).toEqual([FOR]);
    expect(renewed).toEqual([]);
  });
});
