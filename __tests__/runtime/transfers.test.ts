import type { RunningExchange } from "../../src/runtime/exchange/exchange.js";
import { plainName, shownPath, Transfers } from "../../src/runtime/dispatch/transfers.js";
import { fakeRoute } from "../../testkit/fakeExchange.js";
import fc from "../../testkit/property.js";

/** What people are shown of requests in progress: enough to know them again, and nothing that would be a secret. */

const TOKEN = "3f2a9c0b7d5e41a88c6e";

test.each([
  ["/sync", "/sync", "/sync", undefined],
  ["/sync", "/sync/", "/sync", undefined],
  ["/sync", "/sync/library", "/sync/…", undefined],
  ["/", "/report.pdf", "/", "report.pdf"],
  ["/", `/f/${TOKEN}/`, "/…", undefined],
  ["/", `/d/${TOKEN}/files/a.txt`, "/…/", "a.txt"],
  ["/synchttp", `/synchttp/upload-aj/${TOKEN}`, "/synchttp/…", undefined],
  ["/synchttp", `/synchttp/files/${TOKEN}/holiday.mp4`, "/synchttp/…/", "holiday.mp4"],
  ["/dav", "/dav/IMG_20260101_120000.jpg", "/dav/", "IMG_20260101_120000.jpg"],
  // Names that may be keys themselves.
  ["/", `/${TOKEN}${TOKEN}.png`, "/", "3f2a….png"],
  ["/", "/6ba7b810-9dad-11d1-80b4-00c04fd430c8.zip", "/", "6ba7….zip"],
  ["/", "/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N", "/…", undefined],
  ["/", "/.env", "/…", undefined],
  ["/", "/archive.tar.1234", "/…", undefined],
  ["/", `/${"long name ".repeat(8)}end.pdf`, "/", "long name long name …me end.pdf"],
  ["/", "/\xc3\xa9t\xc3\xa9.txt", "/", "été.txt"],
  ["/", "/a\x1b[31m\x07<b>.txt", "/", "a\\u001b[31m\\u0007<b>.txt"],
])("below %s, the path %j is shown as %s and %s", (route, path, shown, file) => {
  expect(shownPath(route, path)).toEqual(file === undefined ? { path: shown } : { path: shown, file });
});

test.each([
  ["Mozilla/5.0 (X11; Linux x86_64; rv:141.0) Gecko/20100101 Firefox/141.0", "Firefox 141"],
  [
    "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0",
    "Edge 140",
  ],
  [
    "Mozilla/5.0 (Macintosh) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15",
    "Safari 18",
  ],
  ["rclone/v1.68.1", "rclone/v1.68.1"],
  ["Seafile/9.0.5 (Linux)", "Seafile/9.0.5"],
  ["", ""],
  ["<script>alert(1)</script>", "scriptalert"],
  ["x".repeat(40), "x".repeat(40)],
  ["x".repeat(41), `${"x".repeat(39)}…`],
  ["x".repeat(100), `${"x".repeat(39)}…`],
  ["Mozilla/5.0 Firefox/", "Mozilla/5.0"],
  ["Mozilla/5.0 Chrome/140.0 Safari/537.36 OPR/120.0", "Opera 120"],
  ["Mozilla/5.0 Chrome/140.0 Safari/537.36", "Chrome 140"],
  ["Mozilla/5.0 (iPhone) CriOS/139.0 Mobile/15E148 Safari/604.1", "Chrome 139"],
  ["Mozilla/5.0 (iPhone) FxiOS/138.0 Mobile/15E148 Safari/605.1.15", "Firefox 138"],
  ["Mozilla/5.0 Firefox/1234567", "Firefox 123456"],
  [`Mozilla/5.0 ${" ".repeat(491)}Firefox/1`, "Firefox 1"],
  [`Mozilla/5.0 ${" ".repeat(492)}Firefox/1`, "Mozilla/5.0"],
])("the program of %j is %s", (field, name) => {
  expect(plainName(field)).toBe(name);
});

const ANY = fc.string({ unit: "binary", maxLength: 200 });

test("whatever a client sends, what is shown is short, printable, and without a query", () => {
  fc.assert(
    fc.property(ANY, ANY, (path, agent) => {
      const { path: shown, file = "" } = shownPath("/base", `/base/${Buffer.from(path).toString("latin1")}`);
      expect(["/base", "/base/", "/base/…", "/base/…/"]).toContain(shown);
      expect(file.length).toBeLessThan(250);
      // eslint-disable-next-line no-control-regex
      expect(file).not.toMatch(/[\0-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]/);
      expect(plainName(agent)).toMatch(/^[\w./+ -]{0,39}[\w./+…-]?$/);
    }),
  );
});

function running(bytes: number, more: Partial<RunningExchange> = {}, receivedAt = 0): RunningExchange {
  const request = {
    method: "PUT",
    path: "/a.bin",
    headers: [],
    bodyLength: 1_000,
    upgrade: undefined,
    receivedAt,
  };
  return {
    request,
    client: { address: "192.0.2.7" },
    server: { name: "site" },
    route: fakeRoute({ name: "all", path: "/", action: { type: "respond" } as never }),
    status: 0,
    headSent: false,
    bodyBytesSent: 0,
    bodyBytesReceived: bytes,
    responseBytes: -1,
    ...more,
  } as unknown as RunningExchange;
}

test("an upload has its progress, and its rate since it was looked at before", () => {
  let now = 10_000;
  const transfers = new Transfers(() => now);
  const upload = running(500, {}, 9_000);
  const [first] = transfers.look([upload]).transfers;
  expect(first).toMatchObject({
    kind: "upload",
    bytesIn: 500,
    bytesTotal: 1_000,
    ageMs: 1_000,
    bytesPerSecond: 500,
  });
  Object.assign(upload, { bodyBytesReceived: 900 });
  now += 200;
  // Too soon for another rate.
  expect(transfers.look([upload]).transfers[0]).toMatchObject({
    id: first!.id,
    bytesIn: 900,
    bytesPerSecond: 500,
  });
  now += 800;
  expect(transfers.look([upload]).transfers[0]).toMatchObject({ bytesPerSecond: 400 });
});

test("of many, those that moved most are told of one by one, the oldest first", () => {
  const all = Array.from({ length: 300 }, (_, i) => running(i, {}, 1_000 - i));
  const { transfers, more } = new Transfers(() => 2_000).look(all);
  expect([transfers.length, more]).toEqual([100, 200]);
  expect([transfers[0]!.bytesIn, transfers.at(-1)!.bytesIn]).toEqual([299, 200]);
});

test("a response is a download, an open tunnel a tunnel; a method that nobody knows is not repeated", () => {
  const request = { ...running(0).request, bodyLength: 0, method: "\x1b[2J" };
  const download = running(0, { request, status: 200, headSent: true, bodyBytesSent: 5, responseBytes: 50 });
  const tunnel = running(7, { request: { ...request, upgrade: "websocket" }, status: 101, headSent: true });
  const sent = (responseBytes: number) => ({ request, status: 200, headSent: true, responseBytes });
  const empty = running(0, { ...sent(0), bodyBytesSent: 2 });
  const unknown = running(0, { ...sent(-1), bodyBytesSent: 1 });
  const seen = new Transfers().look([download, tunnel, empty, unknown]).transfers;
  expect(seen.map((one) => [one.kind, one.method, "bytesTotal" in one ? one.bytesTotal : "none"])).toEqual([
    ["tunnel", "other", "none"],
    ["download", "other", 50],
    ["download", "other", "none"],
    ["download", "other", "none"],
  ]);
});

test("requests without a route, and those for the status itself, are left out", () => {
  const status = fakeRoute({ name: "s", path: "/s", action: { type: "status" } as never });
  expect(
    new Transfers().look([running(1, { route: undefined }), running(1, { route: status })]).transfers,
  ).toEqual([]);
});
