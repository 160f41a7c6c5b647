import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "../../src/cli/program.js";
import type { ListedCertificate } from "../../src/runtime/supervisor/control/certificateList.js";

/** What `portico certificates` prints of what a running portico says. */

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

async function listed(certificates: readonly ListedCertificate[] | undefined, ...options: string[]) {
  const folder = mkdtempSync(join(tmpdir(), "portico-control-"));
  const control = join(folder, "control.sock");
  let asked = "";
  const master = createServer((socket) =>
    socket.once("data", (request) => {
      asked = String(request);
      socket.end(`${JSON.stringify({ ok: true, value: { message: "", warnings: [], certificates } })}\n`);
    }),
  ).listen(control);
  await once(master, "listening");
  let out = "";
  try {
    const output = { out: (text: string) => void (out += text), err: (text: string) => void (out += text) };
    const code = await run(["certificates", ...options, "--control", control], output);
    return { code, asked: JSON.parse(asked) as unknown, out };
  } finally {
    master.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

const soon = Math.ceil(Date.now() / 60_000) * 60_000 + 5 * HOUR;
const soonText = `${new Date(soon).toISOString().slice(0, 16).replace("T", " ")} UTC`;
const own = { names: ["a.example"], listeners: ["https"], issuer: "CA" } as const;
const files: ListedCertificate = {
  ...own,
  source: "files",
  from: "/etc/a.pem",
  notBefore: Date.now() - DAY,
  notAfter: Date.now() + 3 * DAY + HOUR,
};
const byAcme = (more: Partial<ListedCertificate>): ListedCertificate => ({
  ...files,
  source: "acme",
  from: "ca",
  state: "valid",
  ...more,
});

test("a table, as wide as its cells", async () => {
  const names = ["b.example", "c.example"];
  const temporary = byAcme({
    names,
    source: "temporary",
    state: "ordering",
    notAfter: Date.now() + DAY - HOUR,
  });
  const { code, asked, out } = await listed([files, temporary]);
  expect(out.split("\n")).toEqual([
    "NAMES                ISSUER  DAYS LEFT  SOURCE                          NEXT ATTEMPT",
    "a.example            CA      3          /etc/a.pem                      -",
    "b.example c.example  CA      0          temporary, until ca issues one  under way",
    "",
  ]);
  expect([code, asked]).toEqual([1, { command: "certificates" }]);
});

test.each<[what: string, certificate: ListedCertificate, code: number, last: RegExp]>([
  ["from files", files, 0, /\/etc\/a\.pem +-$/],
  ["that is renewed later", byAcme({ nextAttempt: soon }), 0, new RegExp(`ACME \\(ca\\) +${soonText}$`)],
  ["whose time has come", byAcme({ nextAttempt: Date.now() - 1 }), 0, /ACME \(ca\) +now$/],
  ["that is being ordered", byAcme({ state: "ordering", nextAttempt: soon }), 0, / under way$/],
  [
    "of another host",
    byAcme({ state: "ordering", waitsFor: "192.0.2.9" }),
    0,
    / waiting for the address 192\.0\.2\.9$/,
  ],
  ["that has expired", byAcme({ notAfter: Date.now() - 1 }), 1, /CA +expired +ACME/],
])("a certificate %s", async (_, certificate, code, last) => {
  const { code: ended, out } = await listed([certificate]);
  expect(out.trimEnd()).toMatch(last);
  expect(ended).toBe(code);
});

test("a failure stands below with its fix, and how to try again before it is tried again", async () => {
  const lastError = { code: "dns", message: "a.example: no", fix: "Do it.", at: Date.now() - 2 * HOUR };
  const below = async (more: object): Promise<string[]> =>
    (await listed([byAcme({ state: "waiting", lastError, ...more })])).out.split("\n").slice(2, -1);
  const said = [expect.stringMatching(/^ {2}last error, 2 .*: a\.example: no$/), "  fix: Do it."];
  expect(await below({ nextAttempt: soon })).toEqual([
    ...said,
    "  then: portico certificates renew a.example",
  ]);
  expect(await below({ nextAttempt: Date.now() - 1 })).toEqual(said);
  expect(await below({})).toEqual(said);
});

test.each([
  [-1, "0 min"],
  [119, "119 min"],
  [120, "2 h"],
  [48 * 60 - 1, "47 h"],
  [48 * 60, "2 days"],
])("a failure of %i minutes before is %s ago", async (minutes, ago) => {
  const lastError = { code: "dns", message: "no", fix: "Do it.", at: Date.now() - minutes * 60_000 };
  expect((await listed([byAcme({ lastError })])).out).toContain(`  last error, ${ago} ago: no\n`);
});

test("nothing, and all of it as JSON", async () => {
  expect(await listed([])).toMatchObject({ code: 0, out: "no certificates: there is no https listener\n" });
  expect(await listed(undefined)).toMatchObject({
    code: 0,
    out: "no certificates: there is no https listener\n",
  });
  const { code, out } = await listed([files], "--json");
  expect([code, JSON.parse(out)]).toEqual([0, { ok: true, certificates: [files] }]);
});

test("a renewal is of all, or of the one with a name", async () => {
  expect((await listed(undefined, "renew")).asked).toEqual({ command: "renew" });
  expect((await listed(undefined, "renew", "a.example")).asked).toEqual({
    command: "renew",
    name: "a.example",
  });
});
