import { limited, type Overview, shortAddress } from "../../src/runtime/status/overview.js";
import { statusPage } from "../../src/runtime/status/page.js";
import { SCRIPT } from "../../src/runtime/status/script.js";
import { statusAnswer } from "../../src/runtime/status/site.js";
import { STYLE } from "../../src/runtime/status/style.js";
import { troublesOf } from "../../src/runtime/status/troubles.js";
import { statusText } from "../../src/cli/statusText.js";
import { escapingControls } from "../../src/cli/output.js";
import { sampleOverview } from "../../proof/kit/overviews.js";
import fc from "../../proof/kit/property.js";

/** What the page, its data and the terminal make of an overview, and of one whose every text is hostile. */

const LINKS = { script: "?script", style: "?style" };
const HOSTILE = [
  `"><script>alert(1)</script>`,
  `' onload='alert(1)`,
  "</title></svg></style><img src=x onerror=alert(1)>",
  "\u001b]0;owned\u0007\u001b[2J",
  "\u202eevil\u2066",
  "&lt;b&gt;${1}`",
  "\0",
];

/** The elements of a page, without what the texts between and within them are. */
const skeleton = (page: string): string =>
  [...page.matchAll(/<[^>]*>/g)].map(([tag]) => tag.replace(/"[^"]*"/g, '""')).join("");

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
  const { body, contentType } = await statusAnswer(asked, () => Promise.resolve(overview));
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
  expect(troublesOf(sampleOverview()).map(({ level, text }) => `${level}: ${text}`)).toEqual([
    "error: Reload refused, the running configuration stays: listeners[0].port is taken",
    "warn: Upstream web: its server http://10.0.0.8:8000 is down: refused",
    "warn: The certificate of files.example.org was not renewed: the authority refused; it ends in 9 days",
    "warn: Every virtual server is in maintenance",
  ]);
});

const WELL = { upstreams: [], certificates: [], pauses: [], events: [] };
const { pauses, upstreams } = sampleOverview();

test.each<[count: string, less: Partial<Overview>]>([
  ["all is well", WELL],
  ["1 trouble", { ...WELL, pauses }],
  ["2 troubles", { ...WELL, pauses, upstreams }],
  ["4 troubles", {}],
])("that %s is said in the title, in the first place of the page, and as text", (count, less) => {
  const overview = { ...sampleOverview(), ...less };
  const number = troublesOf(overview).length;
  expect(number).toBe(parseInt(count) || 0);
  const page = statusPage(overview, LINKS);
  expect(page).toContain(`<title>Portico: ${count}</title>`);
  const [standing] = /<div id="standing"[^]*?<\/div>/.exec(page)!;
  const [text] = statusText(overview).split(/ +NOW /);
  for (const said of [standing, text!]) expect(/all is well/i.test(said)).toBe(number === 0);
  expect(standing.match(/<li class="(?:error|warn)">/g) ?? []).toHaveLength(number);
  expect(text!.match(/^(?:error|warning): /gm) ?? []).toHaveLength(number);
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

test("as text", () => {
  expect(statusText(sampleOverview())).toMatchInlineSnapshot(`
"portico 0.1.0, up for 3 d 4 h, generation 5, 2 workers
http 0.0.0.0:80  https 0.0.0.0:443

error: Reload refused, the running configuration stays: listeners[0].port is taken
  fix: Take another.
warning: Upstream web: its server http://10.0.0.8:8000 is down: refused
  fix: Look at the application's own log, and whether it listens there.
warning: The certificate of files.example.org was not renewed: the authority refused; it ends in 9 days
  fix: Wait.
warning: Every virtual server is in maintenance

           NOW       LAST 15 MIN                                    MOST
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
error: reload refused, the running configuration stays (40 s ago)
  listeners[0].port: is taken
  fix: Take another.
"
`);
});
