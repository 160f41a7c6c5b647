import { statusText } from "../../src/cli/statusText.js";
import { type FaultFacts, FAULTS, faultsOf } from "../../src/model/faults.js";
import { ENGINE_ROWS } from "../../src/model/host/rows.js";
import { noticesOf } from "../../src/runtime/notifications/notice.js";
import type { Overview } from "../../src/runtime/status/overview.js";
import { statusPage } from "../../src/runtime/status/page.js";
import { alerts } from "../../testkit/monitoring.js";
import { sampleOverview } from "../../testkit/overviews.js";

/** Each fault of the list is in each reader, or its entry says why not. */

const LINKS = { script: "?script", style: "?style", icon: "?icon" };
const problem = { message: "refused", fix: "Open the port." };
const certificate = { names: ["a.example"], listeners: ["l"], issuer: "CA", notAfter: 0, daysLeft: 9 };
const server = { url: "http://b", backup: false, state: "down", failures: 0 } as const;

/** For each kind what makes it hold; nothing for those that only an alert rule sees. */
const FACTS: Readonly<Record<string, FaultFacts | undefined>> = {
  "upstream-server": { upstreams: [{ name: "web", servers: [server] }] },
  "certificate-ends": { certificates: [{ ...certificate, source: "files", end: "soon" }] },
  "certificate-not-renewed": { certificates: [{ ...certificate, source: "acme", end: "later", problem }] },
  "certificate-not-issued": {
    certificates: [{ ...certificate, source: "temporary", end: "later", problem }],
  },
  "certificate-temporary": { certificates: [{ ...certificate, source: "temporary", end: "later" }] },
  "client-authority-ends": {
    clientAuthorities: [{ name: "CN=Clients", file: "crl", daysLeft: 1, end: "last" }],
  },
  "change-refused": { events: [{ at: 0, level: "error", message: "reload refused", problems: [] } as never] },
  stopping: { state: "stopping" },
  pause: { pauses: ["Every site is in maintenance"] },
  "silent-worker": { workers: { running: 2, silent: 1 } as never },
  "worker-ends": { workerEnds: { count: 3, minutes: 10, last: "was killed" } },
  "disk-full": { fullDisks: [{ path: "/var/log", freeBytes: 0.01, freeInodes: 1 }] },
  "activation-rolled-back": { rolledBack: { reason: "no response", fix: "Look." } },
  "log-lines-lost": undefined,
  "server-errors": undefined,
  absent: undefined,
};

const healthy: Overview = {
  ...sampleOverview(),
  ...{ upstreams: [], certificates: [], pauses: [], events: [], state: "serving" as const },
  workers: { running: 2, silent: 0 },
};

test("each kind has its case, and a case is a fault of one kind", () => {
  expect(Object.keys(FACTS).sort()).toEqual(FAULTS.map(({ name }) => name).sort());
  for (const [name, facts] of Object.entries(FACTS))
    if (facts !== undefined) expect(faultsOf(facts, () => true).map((one) => one.name)).toEqual([name]);
  expect(faultsOf(healthy, () => true)).toEqual([]);
});

test.each(FAULTS)("$name is where its entry says", ({ name, page, notification, alert, doctor }) => {
  for (const one of [page, notification, alert, doctor])
    if (typeof one === "object") expect(one.not).toMatch(/\w+ \w+/);
  if (typeof alert === "string") expect(alerts().map((rule) => rule.name)).toContain(alert);
  if (typeof doctor === "string") expect(ENGINE_ROWS).toContain(doctor);
  const facts = FACTS[name];
  if (facts === undefined) return expect([typeof page, typeof notification]).toEqual(["object", "object"]);
  const [fault] = faultsOf(facts, () => true);
  const overview = { ...healthy, ...(facts as object) };
  expect(statusPage(overview, LINKS).includes(`</span>${fault!.text}.`)).toBe(page === true);
  const level = fault!.level === "error" ? "error" : "warning";
  expect(statusText(overview).includes(`${level}: ${fault!.text}\n`)).toBe(page === true);
  if (typeof notification !== "string") return;
  expect(noticesOf(notification, facts)).toEqual([
    { key: `${notification}/${fault!.subject}`, what: fault!.text, fix: expect.stringMatching(/\.$/) },
  ]);
});

test("each alert rule is about a fault of the list", () => {
  const told = FAULTS.map(({ alert }) => alert);
  expect(alerts().filter(({ name }) => !told.includes(name))).toEqual([]);
});
