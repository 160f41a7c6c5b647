import {
  limited,
  type Overview,
  type OverviewEvent,
  shortAddress,
} from "../../src/runtime/status/overview.js";
import type { CertificateEnd } from "../../src/model/net/certificateEnd.js";
import { statusPage } from "../../src/runtime/status/page.js";
import { SCRIPT, statusResponse, STYLE } from "../../src/runtime/status/site.js";
import { faultsOf } from "../../src/model/faults.js";
import { statusText } from "../../src/cli/statusText.js";
import { escapingControls } from "../../src/cli/output.js";
import { sampleOverview } from "../../testkit/overviews.js";
import fc from "../../testkit/property.js";

/** What the page, its data and the terminal make of an overview, and of one whose every text is hostile. */

const LINKS = { script: "?script", style: "?style", icon: "?icon" };
const HOSTILE = [
  `"><script>alert(1)</script>`,
  `' onload='alert(1)`,
  "</title></svg></style><img src=x onerror=alert(1)>",
  "\u001b]0;owned\u0007\u001b[2J",
  "\u202eevil\u2066",
  "&lt;b&gt;${1}`",
  "\0",
];

/** The elements of a page, without what the texts between and within them are, and how long words are. */
const skeleton = (page: string): string =>
  [...page.matchAll(/<[^>]*>/g)]
    .map(([tag]) => tag.replace(' class="long"', "").replace(/"[^"]*"/g, '""'))
    .join("");

const ANY = fc.oneof(fc.constantFrom(...HOSTILE), fc.string({ unit: "binary", maxLength: 60 }));

test("no text becomes markup: the page has the same elements, whatever the texts are", () => {
  fc.assert(
    fc.property(ANY, (hostile) => {
      // Long enough that nothing is left out or cut that was there, and short enough for a box.
      const page = statusPage(
        sampleOverview((usual) => `${usual.slice(0, 2)}${hostile}`),
        LINKS,
      );
      const usual = statusPage(
        sampleOverview((text) => `${text.slice(0, 2)}x`),
        LINKS,
      );
      expect(skeleton(page)).toBe(skeleton(usual));
      // eslint-disable-next-line no-control-regex
      expect(page).not.toMatch(/[\0-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]/);
    }),
    { numRuns: 200 },
  );
});

test("no text acts on a terminal", () => {
  fc.assert(
    fc.property(ANY, fc.integer({ min: 20, max: 200 }), (hostile, columns) => {
      let out = "";
      escapingControls({ out: (text) => (out += text), err: () => undefined }).out(
        statusText(
          sampleOverview((usual) => usual + hostile),
          columns,
        ),
      );
      // eslint-disable-next-line no-control-regex
      expect(out).not.toMatch(/[\0-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]/);
    }),
  );
});

test("the data are the document, as JSON", async () => {
  const overview = sampleOverview((usual) => usual + HOSTILE.join(""));
  const asked = { part: "json", addresses: "whole", fileNames: true } as const;
  const { body, contentType } = await statusResponse(asked, () => Promise.resolve(overview));
  expect(contentType).toBe("application/json; charset=utf-8");
  expect(JSON.parse(body)).toEqual(overview);
});

test("everything is in the page without its script", () => {
  const page = statusPage(sampleOverview(), LINKS);
  for (const fact of [
    ...["/files/…/", "report.pdf", "192.0.2.7", "rclone/v1", "70 %", "5 kB", "1 min 1 s", "3 other requests"],
    ...[
      "http://10.0.0.8:8000",
      "refused",
      "files.example.org",
      "in 9 days",
      "the authority refused",
      "maintenance",
    ],
    ...[
      "reload refused",
      "Take another.",
      "12&#47;s".replace("&#47;", "/"),
      "up for 3 d 4 h",
      "generation 5",
    ],
  ])
    expect(page).toContain(fact);
  expect(page).toContain('<noscript><meta http-equiv="refresh" content="5"></noscript>');
});

test("nothing in the page is inline, and its files are small", () => {
  const page = statusPage(sampleOverview(), LINKS);
  expect(page).not.toMatch(/ on\w+=|style=|<style|javascript:|<script(?! src="\?script" defer><\/script>)/);
  expect(SCRIPT.length + STYLE.length).toBeLessThan(30 * 1024);
  // It is plain JavaScript.
  expect(() => new Function(SCRIPT)).not.toThrow();
});

test("no attribute is empty, whether texts are long or short", () => {
  for (const name of ["a", "a".repeat(60)]) {
    const upstreams = sampleOverview().upstreams.map((one) => ({ ...one, name }));
    expect(statusPage({ ...sampleOverview(), upstreams }, LINKS)).not.toMatch(/=""|=" /);
  }
});

test("addresses are shortened and files left out where a route says so", () => {
  const [upload] = limited(sampleOverview(), { addresses: "shortened", fileNames: false }).transfers;
  expect(upload).toMatchObject({ client: "192.0.2.x", path: "/files/…/" });
  expect(upload).not.toHaveProperty("file");
  expect(limited(sampleOverview(), { addresses: "whole", fileNames: true })).toEqual(sampleOverview());
});

test.each([
  ["192.0.2.77", "192.0.2.x"],
  ["2001:db8:1:2::5", "2001:db8:1::x"],
  ["2001:db8::5", "2001:db8::x"],
  ["::1", "::x"],
  ["unix:", "unix:"],
])("%s is shortened to %s", (address, short) => {
  expect(shortAddress(address)).toBe(short);
});

test("what is not as it should be comes first, the worst before the rest", () => {
  expect(faultsOf(sampleOverview()).map(({ level, text }) => `${level}: ${text}`)).toEqual([
    "error: Reload refused; the current config stays in force: listeners[0].port is taken",
    "warn: Upstream web: its server http://10.0.0.8:8000 is down: refused",
    "warn: The certificate of files.example.org was not renewed: the authority refused; it ends in 9 days",
    "warn: Every site is in maintenance",
  ]);
});

const WELL = { upstreams: [], certificates: [], pauses: [], events: [] };
const { pauses, upstreams } = sampleOverview();

const NOW = { ...sampleOverview(), ...WELL };
const serverAt = (url: string, state: string, more: object = {}) => ({
  url,
  backup: false,
  failures: 0,
  state,
  ...more,
});
const [a, b] = [serverAt.bind(undefined, "http://a"), serverAt.bind(undefined, "http://b")];
const ofServers = (...servers: object[]) => ({ upstreams: [{ name: "web", servers }] }) as Partial<Overview>;
const ending = (daysLeft: number, more: object = {}) =>
  ({
    certificates: [
      {
        names: ["a"],
        listeners: ["l"],
        issuer: "CA",
        source: "files",
        notAfter: 0,
        daysLeft,
        end: "last",
        ...more,
      },
    ],
  }) as Partial<Overview>;
const events = (...messages: string[]) =>
  ({
    events: messages.map((message) => ({
      at: 0,
      level: /refused|lost/.test(message) ? "error" : "info",
      message,
      problems: [],
    })),
  }) as Partial<Overview>;

test.each<[Partial<Overview>, string[]]>([
  [ofServers(a("up"), a("drained")), []],
  [
    ofServers(a("up"), b("failing", { failures: 1, why: "refused" })),
    ["warn: Upstream web: its server http://b – 1 request failed in the last minute: refused"],
  ],
  [
    ofServers(a("failing", { failures: 2 })),
    ["error: Upstream web: its server http://a – 2 requests failed in the last minute"],
  ],
  [ofServers(a("down"), b("drained")), ["error: Upstream web: its server http://a is down"]],
  [ending(2, { names: ["a", "b", "c"] }), ["error: The certificate of a and 2 more ends in 2 days"]],
  [events("log lost", "upgrade refused", "configuration reloaded: a"), ["error: Upgrade refused"]],
  [
    { ...events("reload refused"), state: "stopping" },
    ["error: Reload refused", "warn: Portico finishes the requests in progress, and stops"],
  ],
])("what somebody should do something about is said in a sentence: %#", (some, texts) => {
  expect(faultsOf({ ...NOW, ...some }).map(({ level, text }) => `${level}: ${text}`)).toEqual(texts);
});

test.each<[count: string, less: Partial<Overview>]>([
  ["All is well", WELL],
  ["1 trouble", { ...WELL, pauses }],
  ["2 troubles", { ...WELL, pauses, upstreams }],
  ["4 troubles", {}],
])("that %s is said in the title, in the first place of the page, and as text", (count, less) => {
  const overview = { ...sampleOverview(), ...less };
  const number = faultsOf(overview).length;
  expect(number).toBe(parseInt(count) || 0);
  const page = statusPage(overview, LINKS);
  expect(page).toContain(`<title>Portico: ${count}</title>`);
  const [standing] = /<div id="standing"[^]*?<\/div>/.exec(page)!;
  const [text] = statusText(overview).split(/ +NOW /);
  for (const said of [standing, text!]) expect(/all is well/i.test(said)).toBe(number === 0);
  expect(standing.match(/<li class="(?:error|warn)">/g) ?? []).toHaveLength(number);
  expect(text!.match(/^(?:error|warning): /gm) ?? []).toHaveLength(number);
});

test("where no request has reached a server, nobody says that all is well", () => {
  const overview = { ...sampleOverview(), ...WELL, ...ofServers(a("unasked"), b("unasked")) };
  expect(said(overview)).toEqual([]);
  const words = "No trouble is known; no request has reached 2 upstream servers so far";
  expect(statusPage(overview, LINKS)).toContain(`<p class="well">${words}.</p>`);
  expect(statusPage(overview, LINKS)).toContain(`<title>Portico: ${words}</title>`);
  expect(statusText(overview)).toContain(`ok  ${words}\n`);
  expect(statusText(overview)).toMatch(/web +http:\/\/a +not asked yet/);
});

/** What the page marks as a state: the kind, which is its colour, and the text. */
const marked = (overview: Overview): string[] =>
  [...statusPage(overview, LINKS).matchAll(/<span class="state (\w+)">([^<]*)/g)].map(
    ([, kind, text]) => `${kind}: ${text}`,
  );
const said = (overview: Overview): string[] =>
  faultsOf(overview).map(({ level, text }) => `${level}: ${text}`);
const [failed] = sampleOverview().certificates;
const { problem: _problem, ...certificate } = failed!;
const OF = "The certificate of files.example.org";

test.each<[number, CertificateEnd, string, string, string | undefined]>([
  [60, "later", "ends in 60 days", "good", undefined],
  [14, "later", "ends in 14 days", "good", undefined],
  [13, "soon", "ends in 13 days", "warn", "warn"],
  [3, "soon", "ends in 3 days", "warn", "warn"],
  // Of six days.
  [2, "later", "ends in 2 days", "good", undefined],
  [2, "last", "ends in 2 days", "bad", "error"],
  [0, "last", "ends within a day", "bad", "error"],
  [-1, "ended", "ended 1 day ago", "bad", "error"],
  [-2, "ended", "ended 2 days ago", "bad", "error"],
])("a certificate with %i days left, %s, %s: %s, and %s", (daysLeft, end, text, kind, level) => {
  const well = { ...sampleOverview(), ...WELL, certificates: [{ ...certificate, daysLeft, end }] };
  expect(marked(well)).toEqual([`${kind}: ${text}`]);
  expect(said(well)).toEqual(level === undefined ? [] : [`${level}: ${OF} ${text}`]);
  expect(statusText(well)).toContain(`files.example.org  ${text} `);
  const ill = { ...well, certificates: [{ ...failed!, daysLeft, end }] };
  expect(marked(ill)).toEqual([`${kind === "good" ? "warn" : kind}: ${text}`]);
  expect(said(ill)).toEqual([`${level ?? "warn"}: ${OF} was not renewed: the authority refused; it ${text}`]);
});

test.each<[names: string[], shown: string, of: string]>([
  [["a.org"], "a.org", "a.org"],
  [["a.org", "b.org"], "a.org, b.org", "a.org and 1 more"],
  [["a.org", "b.org", "c.org"], "a.org, b.org, c.org", "a.org and 2 more"],
  [["a.org", "b.org", "c.org", "d.org"], "a.org, b.org, c.org and 1 more", "a.org and 3 more"],
])("a temporary certificate of %j is one of %s", (names, shown, of) => {
  const temporary = { ...certificate, names, daysLeft: 300, end: "later", source: "temporary" } as const;
  const overview = { ...sampleOverview(), ...WELL, certificates: [temporary] };
  expect(statusPage(overview, LINKS)).toContain(`>${shown}<span class="sub">temporary, by R11</span></th>`);
  expect(said(overview)).toEqual([
    `warn: The certificate of ${of} is a temporary one, which browsers do not trust`,
  ]);
  expect(statusText(overview)).toMatch(/ R11 \(temporary\)\n/);
  // No client connects to this host as long as another one has the address.
  const waiting = { ...overview, certificates: [{ ...temporary, waitsFor: "192.0.2.9" }] };
  expect(statusPage(waiting, LINKS)).toContain(
    "; the host with the address 192.0.2.9 asks for certificates<",
  );
  expect(said(waiting)).toEqual([]);
});

test.each([
  ["unasked", "idle", "– 2 requests failed in the last minute: refused"],
  ["up", "good", "– 2 requests failed in the last minute: refused"],
  ["failing", "warn", "– 2 requests failed in the last minute: refused"],
  ["out", "warn", "is out: refused"],
  ["drained", "idle", "is drained: refused"],
  ["down", "bad", "is down: refused"],
] as const)("a server that is %s is %s: %s", (state, kind, trouble) => {
  const server = { url: "http://a", backup: false, state, failures: 2, why: "refused" };
  const only = { ...sampleOverview(), ...WELL, upstreams: [{ name: "web", servers: [server] }] };
  expect(marked(only)).toEqual([`${kind}: ${state === "unasked" ? "not asked yet" : state}`]);
  const level = state === "up" || state === "unasked" ? "warn" : "error";
  expect(said(only)).toEqual([`${level}: Upstream web: its server http://a ${trouble}`]);
  const servers = [server, { ...server, url: "http://b", state: "up" as const, failures: 0 }];
  const other = { ...only, upstreams: [{ name: "web", servers }] };
  expect(said(other)).toEqual(
    // A command has drained it, and another one is left.
    state === "drained" ? [] : [`warn: Upstream web: its server http://a ${trouble}`],
  );
});

const event = (level: OverviewEvent["level"], message: string): OverviewEvent => ({
  ...{ at: 0, level, message, problems: [] },
});

test.each<[level: OverviewEvent["level"], onPage: string[], asText: string]>([
  ["info", [], "\nm ("],
  ["warn", ["warn: warning"], "\nwarning: m ("],
  ["error", ["bad: error"], "\nerror: m ("],
  ["crit", ["bad: error"], "\nerror: m ("],
])("an event of the level %s is marked as %j", (level, onPage, asText) => {
  const overview = { ...sampleOverview(), ...WELL, events: [event(level, "m")] };
  expect(marked(overview)).toEqual(onPage);
  expect(statusText(overview)).toContain(asText);
});

test.each<[more: Partial<Overview>, troubles: string[]]>([
  [{ state: "stopping" }, ["warn: Portico finishes the requests in progress, and stops"]],
  [{ workers: { running: 2, silent: 1 } }, ["warn: 1 worker did not respond"]],
  [{ workers: { running: 2, silent: 2 } }, ["warn: 2 workers did not respond"]],
  [{ events: [event("info", "configuration reloaded"), event("error", "reload refused")] }, []],
  [{ events: [event("error", "reload refused, it stays")] }, ["error: Reload refused, it stays"]],
  [{ events: [event("error", "upgrade refused")] }, ["error: Upgrade refused"]],
  [{ events: [event("warn", "configuration reloaded, but")] }, ["error: Configuration reloaded, but"]],
  [{ events: [event("error", "no reload refused"), event("error", "something else")] }, []],
])("%j is %j", (more, troubles) => {
  expect(said({ ...sampleOverview(), ...WELL, ...more })).toEqual(troubles);
});

test("every kind of state has a colour, in the light and in the dark", () => {
  for (const [kind, colour] of Object.entries({ good: "good", warn: "warn", bad: "bad", idle: "soft" }))
    expect(STYLE).toMatch(new RegExp(`\\.${kind}\\{color:var\\(--${colour}\\)`));
  for (const [, name] of STYLE.matchAll(/var\((--\w+)\)/g))
    expect([name, STYLE.match(new RegExp(`${name}:#[0-9a-f]{3,8}[;}]`, "g"))]).toEqual([
      name,
      [expect.any(String), expect.any(String)],
    ]);
});

test("what there is none of has no table", () => {
  const some = { ...sampleOverview(), moreTransfers: 0 };
  const none = { ...some, ...WELL, transfers: [] };
  const nones = (overview: Overview): number =>
    statusPage(overview, LINKS).split('<p class="none">').length - 1;
  expect([nones(some), nones(none)]).toEqual([0, 4]);
  const text = statusText(none);
  expect(text).toContain("\nnothing is being transferred\n");
  expect(text).not.toMatch(/IN PROGRESS|other request|UPSTREAM|CERTIFICATE|LAST\n/);
});

test("lines that are longer than the terminal is wide are cut there, and no others", () => {
  const linesAt = (columns?: number): string[] => statusText(sampleOverview(), columns).split("\n");
  const whole = linesAt();
  const lengths = whole.map((line) => [...line].length);
  const longest = Math.max(...lengths);
  for (const columns of [20, 35, 80, longest - 1, longest]) {
    const shown = linesAt(columns);
    expect(shown.map((line) => [...line].length)).toEqual(lengths.map((length) => Math.min(length, columns)));
    const begins = shown.map((line, i) => (line === whole[i] ? line : line.replace(/…$/, "")));
    expect(begins.filter((begin, i) => !whole[i]!.startsWith(begin))).toEqual([]);
  }
});

/** What is read on the page, or to somebody who does not see it, piece by piece. */
const words = (page: string): string =>
  [...page.matchAll(/>([^<]*[^<\s][^<]*)|(?:aria-label|title)="([^"]*)"/g)]
    .map(([, text, label]) => text ?? `(${label})`)
    .join("|")
    .replace(/.{80}[^|]*\|/g, "$&\n");

test("as words", () => {
  expect(words(statusPage(sampleOverview(), LINKS))).toMatchInlineSnapshot(`
"Portico: 4 troubles|Portico|http 0.0.0.0:80 · https 0.0.0.0:443|Release 0.1.0, up for 3 d 4 h, generation 5, 2 workers|
Error: |Reload refused; the current config stays in force: listeners[0].port is taken. |
Take another.|Warning: |Upstream web: its server http://10.0.0.8:8000 is down: refused. |
Look at the application&#39;s own log, and whether it listens there; \`portico upstreams\` shows all servers.|
Warning: |The certificate of files.example.org was not renewed: the authority refused; it ends in 9 days. |
Wait.|Warning: |Every site is in maintenance.|(Traffic)|Requests|31.4|/s|48 connections open|
10/s|(Requests a second in the last 15 min: 31.4 now, 31.4 at most)|15 min ago|now|
Bytes|8.4 MB|/s in |2.1 MB|/s out|50 B/s|(Bytes a second in the last 15 min: 8.4 MB in and 2.1 MB out now, 8.4 MB in and 2.1 MB out at most)|
15 min ago|now|In progress |6|Requests in progress, the oldest first|Request|Progress|
Rate|Age|↑|Upload |/files/…/|report.pdf|PUT · 192.0.2.7 · rclone/v1|(Upload of report.pdf)|
70 %|70 %, 700 B of 1 kB|5 kB/s|1 min 1 s|↓|Download |/files/…/|report.pdf|PUT · 192.0.2.7 · rclone/v1|
(Download of report.pdf)|30 %|30 %, 300 B of 1 kB|5 kB/s|1 min 1 s|↕|Tunnel |/files/…/|
report.pdf|PUT · 192.0.2.7 · rclone/v1|700 B in, 300 B out|5 kB/s|1 min 1 s|And 3 other requests, which moved fewer bytes.|
Map of routes|(Picture of it)|Listeners, virtual servers, routes, and where these lead|
Listeners|Virtual servers|Routes|Lead to|http 0.0.0.0:80|any name|/files|and below|
web|12/s|12/s|In words|http 0.0.0.0:80 leads to any name: 12 requests a second|any name leads to /files, and below: 12 requests a second|
/files, and below leads to web: 0 requests a second|Upstream servers|Servers of upstreams, and whether they respond|
Upstream|Server|State|In progress|web|http://10.0.0.7:8000|up|4|web|http://10.0.0.8:8000 |
backup|refused|down|12 failed a minute|–|Certificates|Certificates, and when they end|
Names|End|files.example.org|by R11|the authority refused. Wait.|ends in 9 days|2026-03-10|
Reloads and errors|(2026-03-01 11:59:20 UTC)|40 s ago|error| reload refused; the current config stays in force|
listeners[0].port| is taken. Take another.|As of |2026-03-01 12:00:00 UTC"
`);
});

test("as text", () => {
  expect(statusText(sampleOverview())).toMatchInlineSnapshot(`
"portico 0.1.0, up for 3 d 4 h, generation 5, 2 workers
http 0.0.0.0:80  https 0.0.0.0:443

error: Reload refused; the current config stays in force: listeners[0].port is taken
  fix: Take another.
warning: Upstream web: its server http://10.0.0.8:8000 is down: refused
  fix: Look at the application's own log, and whether it listens there; \`portico upstreams\` shows all servers.
warning: The certificate of files.example.org was not renewed: the authority refused; it ends in 9 days
  fix: Wait.
warning: Every site is in maintenance

           NOW       LAST 15 MIN                                    PEAK
requests   31.4/s    ············································█  8/s
bytes in   8.4 MB/s  ············································█  40 B/s
bytes out  2.1 MB/s  ············································█  5 B/s
48 connections open

IN PROGRESS                                                             RATE    AGE        CLIENT     PROGRAM
↑ PUT /files/…/report.pdf  ███████████░░░░░  70 %  700 B of 1 kB        5 kB/s  1 min 1 s  192.0.2.7  rclone/v1
↓ PUT /files/…/report.pdf  ████░░░░░░░░░░░░  30 %  300 B of 1 kB        5 kB/s  1 min 1 s  192.0.2.7  rclone/v1
↕ PUT /files/…/report.pdf                          700 B in, 300 B out  5 kB/s  1 min 1 s  192.0.2.7  rclone/v1
and 3 other requests, which moved fewer bytes

UPSTREAM  SERVER                STATE                                       IN PROGRESS  WHY
web       http://10.0.0.7:8000  up                                          4
web       http://10.0.0.8:8000  down, backup, 12 failed in the last minute               refused

CERTIFICATE        ENDS                        ISSUER
files.example.org  ends in 9 days  2026-03-10  R11

LAST
error: reload refused; the current config stays in force (40 s ago)
  listeners[0].port: is taken
  fix: Take another.
"
`);
});
