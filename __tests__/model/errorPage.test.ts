import fc from "../../testkit/property.js";
import {
  acceptsHtml,
  ERROR_PAGE_BYTES_MAX,
  errorPageFault,
  PageTemplate,
  type Placeholder,
  PLACEHOLDERS,
} from "../../src/model/net/errorPage.js";
import { parseConfig } from "../../src/model/index.js";
import { sayings } from "../../testkit/sayings.js";

/** Pages of the administrator's: who gets them, what may be in them, and that nothing from outside gets into their HTML. */

const NOTHING = Object.fromEntries(PLACEHOLDERS.map((name) => [name, ""])) as Record<Placeholder, string>;

test.each([
  ["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", true],
  ["text/html", true],
  ["TEXT/HTML; charset=utf-8", true],
  ["application/json, text/html;q=0.1", true],
  ["application/json ,\ttext/html ; q=1", true],
  ["text/html;q=0", false],
  ["text/html;q=0.000, */*", false],
  ["text/html;q=0.001", true],
  ["text/html;level=1;Q=0.0", false],
  ["*/*", false],
  ["text/*", false],
  ["application/json", false],
  ["text/htmlx, xtext/html, text /html", false],
  ["", false],
  [",,;,", false],
])("Accept: %s asks for HTML: %j", (value, expected) => {
  expect(acceptsHtml(["Host", "a", "aCCept", value])).toBe(expected);
});

test("Accept may come in several fields, or not at all", () => {
  expect(acceptsHtml(["Accept", "*/*", "accept", "text/html"])).toBe(true);
  expect(acceptsHtml(["X-Accept", "text/html"])).toBe(false);
  expect(acceptsHtml([])).toBe(false);
});

/** HTML around a value: as text, and in an attribute with either kind of quote. */
const AROUND = [
  ["<p>", "</p>"],
  ['<p title="', '">'],
  ["<p title='", "'>"],
] as const;

test("no value becomes more than text, wherever a page puts it", () => {
  const hostile = fc.string({
    unit: fc.constantFrom(
      ..."&<>\"'`=/ a{};\0\n\u2028é💥",
      "{{time}}",
      "</p>",
      "<script>",
      "&lt;",
      "$&",
      "$1",
    ),
  });
  fc.assert(
    fc.property(
      fc.record(Object.fromEntries(PLACEHOLDERS.map((name) => [name, hostile]))),
      fc.constantFrom(...AROUND),
      (values, [before, after]) => {
        const template = new PageTemplate(
          PLACEHOLDERS.map((name) => `${before}{{${name}}}${after}`).join("\n|"),
        );
        const filled = template.fill(values as Record<Placeholder, string>).split("\n|");
        // A value with the divider itself would be split.
        fc.pre(filled.length === PLACEHOLDERS.length);
        for (const [i, name] of PLACEHOLDERS.entries()) {
          const inside = filled[i]!.slice(before.length, filled[i]!.length - after.length);
          expect(inside).not.toMatch(/[<>"']|&(?!#\d+;)/);
          const read = inside.replace(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)));
          expect(read).toBe(values[name]);
        }
      },
    ),
  );
});

test("what is between placeholders stays to the byte", () => {
  const text = "$& {{status}} { { x } } }} <b>${a}</b> {a{b}} {{retryAfter}}\r\n💥";
  const filled = new PageTemplate(text).fill({ ...NOTHING, status: "$&{{time}}" });
  expect(filled).toBe("$& $&#38;{{time}} { { x } } }} <b>${a}</b> {a{b}} \r\n💥");
  expect(errorPageFault(text)).toBeUndefined();
});

test.each([
  ["", "is empty"],
  ["é".repeat(ERROR_PAGE_BYTES_MAX / 2) + "x", "has 32769 bytes"],
  [Buffer.from("Gr\u00f6\u00dfe", "latin1").toString("utf8"), "is not in UTF-8"],
  ["<p>{{ status }}", "contains an unknown placeholder"],
  ["{{status}} {{constructor}}", "contains an unknown placeholder"],
  ["{{}}", "contains an unknown placeholder"],
  ["{{Status}}", "contains an unknown placeholder"],
  ["{{status}}".repeat(33), "has 33 placeholders"],
])("%j cannot be a page", (html, message) => {
  expect(errorPageFault(html)?.message).toBe(message);
});

test("pages at the limits", () => {
  expect(errorPageFault("é".repeat(ERROR_PAGE_BYTES_MAX / 2))).toBeUndefined();
  expect(errorPageFault("{{status}}".repeat(32))).toBeUndefined();
  expect(errorPageFault("\ufffd")).toEqual({ message: "is not in UTF-8", allowed: "UTF-8, without U+FFFD" });
});

const withPages = (errorPages: unknown) =>
  parseConfig({
    version: 1,
    listeners: [{ name: "http", address: "0.0.0.0", port: 80, protocol: "http" }],
    virtualServers: [
      { name: "a", serverNames: ["_"], listeners: ["http"], default: true, routes: [], errorPages },
    ],
  });

const PAGES = "virtualServers[0].errorPages";
const said = sayings("error-pages");

test.each([
  [{ statuses: [502], html: "x" }, "config.wrong-type", PAGES],
  [[{ statuses: [], html: "x" }], "config.out-of-range", `${PAGES}[0].statuses`],
  [[{ statuses: [200], html: "x" }], "config.not-one-of", `${PAGES}[0].statuses[0]`],
  [[{ statuses: ["502"], html: "x" }], "config.not-one-of", `${PAGES}[0].statuses[0]`],
  [[{ statuses: [502], html: "" }], "config.out-of-range", `${PAGES}[0].html`],
  [[{ statuses: [502], html: "x".repeat(32_769) }], "config.out-of-range", `${PAGES}[0].html`],
  [[{ statuses: [502], html: "é".repeat(32_000) }], "config.bad-error-page", `${PAGES}[0].html`],
  [[{ statuses: [502], html: "{{x}}" }], "config.bad-error-page", `${PAGES}[0].html`],
  [[{ statuses: [502], file: "down.html" }], "config.bad-file-path", `${PAGES}[0].file`],
  [[{ statuses: [502], html: "x", file: "/x" }], "config.unknown-field", `${PAGES}[0].file`],
  [[{ statuses: [502], text: "x" }], "config.missing-field", `${PAGES}[0].html`],
  [[{ statuses: [502, 502], html: "x" }], "config.duplicate-error-page", `${PAGES}[0].statuses[1]`],
  [
    [
      { statuses: [502], html: "x" },
      { statuses: [404, 502], file: "/x" },
    ],
    "config.duplicate-error-page",
    `${PAGES}[1].statuses[1]`,
  ],
])("%j is refused: %s at %s", (errorPages, code, path) => {
  const result = withPages(errorPages);
  const found = result.ok ? [] : said(result.problems).map((p) => `${p.code} ${p.path}`);
  expect(found).toContain(`${code} ${path}`);
});
