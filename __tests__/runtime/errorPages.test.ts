import { readFileSync } from "node:fs";
import { STATUS_CODES } from "node:http";
import { join } from "node:path";
import { respondError, serverHeader } from "../../src/runtime/dispatch/errorPages.js";
import { reasonPhrase } from "../../src/runtime/dispatch/reasonPhrases.js";
import { VERSION } from "../../src/model/text/version.js";
import { FakeExchange, type FakeOptions, type FakeRequest } from "../../testkit/fakeExchange.js";

function error(
  status: number,
  options = {},
  request: FakeRequest = {},
  fake: FakeOptions = {},
): FakeExchange {
  const exchange = new FakeExchange(request, fake);
  respondError(exchange, status, options);
  return exchange;
}

const withVersion: FakeOptions = { server: { versionTokens: true } };

test("the page is nginx's except for the name (decisions 5.3)", () => {
  const e = error(404);
  expect(e.text).toBe(
    "<html>\r\n<head><title>404 Not Found</title></head>\r\n<body>\r\n<center><h1>404 Not Found</h1></center>\r\n" +
      "<hr><center>portico</center>\r\n</body>\r\n</html>\r\n",
  );
  expect([e.status, e.reason, e.ended]).toEqual([404, "Not Found", true]);
  expect(e.headers).toEqual(["Content-Type", "text/html"]);
  expect(e.bodyLength).toBe(146 - "nginx".length + "portico".length);
});

test("the version shows only where the virtual server shows it (decisions 1.6)", () => {
  for (const status of [400, 404, 502]) {
    expect(error(status).text).not.toContain(VERSION);
    expect(error(status, {}, {}, withVersion).text).toContain(`<center>portico/${VERSION}</center>`);
  }
  expect(serverHeader(error(404).server)).toBe("portico");
  expect(serverHeader(error(404, {}, {}, withVersion).server)).toBe(`portico/${VERSION}`);
});

test("HEAD gets the length of the page and no page", () => {
  const e = error(403, {}, { method: "HEAD" });
  expect([e.bodyLength, e.bodyBytesSent, e.ended]).toEqual([error(403).bodyLength, 0, true]);
});

test("additional headers are not kept for the next page", () => {
  expect(error(405, { headers: ["Allow", "GET"] }).headers).toEqual([
    "Content-Type",
    "text/html",
    "Allow",
    "GET",
  ]);
  expect(error(405).headers).toEqual(["Content-Type", "text/html"]);
});

test("the exact reason is on the page, not in the status line", () => {
  const e = error(400, { reason: 'Request Header Or Cookie Too Large & <b>"' });
  expect(e.reason).toBe("Bad Request");
  expect(e.text).toContain("<title>400 Request Header Or Cookie Too Large &#38; &#60;b&#62;&#34;</title>");
  expect(e.text).toContain("<h1>400 Bad Request</h1></center>\r\n<center>Request Header Or Cookie Too Large");
});

test("in the middle of a response the exchange is given up", () => {
  const exchange = new FakeExchange();
  exchange.sendHead(200, "OK", [], 10);
  exchange.sendData(Buffer.from("12345"));
  respondError(exchange, 502);
  expect([exchange.status, exchange.aborted, exchange.ended, exchange.text]).toEqual([
    200,
    true,
    false,
    "12345",
  ]);
});

/** Where nginx has other words than the register. */
const NGINX: Readonly<Record<number, string>> = {
  405: "Not Allowed",
  408: "Request Time-out",
  413: "Request Entity Too Large",
  414: "Request-URI Too Large",
  416: "Requested Range Not Satisfiable",
  503: "Service Temporarily Unavailable",
  504: "Gateway Time-out",
};

test.each(Object.keys(STATUS_CODES).map(Number))("the phrase of %i", (status) => {
  expect(reasonPhrase(status)).toBe(NGINX[status] ?? STATUS_CODES[status]);
});

test("a status that is not registered has no phrase", () => {
  expect(reasonPhrase(299)).toBe("");
  expect(error(599).text).toContain("<title>599</title></head>\r\n<body>\r\n<center><h1>599</h1></center>");
});

test.each([
  ...[400, 408, 413, 414, 500, 501, 505].map((status) => [status, true] as const),
  ...[403, 404, 405, 412, 416, 417, 502, 503, 504].map((status) => [status, false] as const),
])("after %i the connection closes: %j (decisions 4.8)", (status, closes) => {
  expect((error(status) as { closes?: boolean }).closes === true).toBe(closes);
});

test("the version is the package's", () => {
  const manifest = JSON.parse(readFileSync(join(__dirname, "../../package.json"), "utf8")) as {
    version: string;
  };
  expect(VERSION).toBe(manifest.version);
});
