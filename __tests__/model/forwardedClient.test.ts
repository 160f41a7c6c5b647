import { withinRanges } from "../../src/model/access/addressSet.js";
import { forwardedClient } from "../../src/model/net/forwardedClient.js";

/** Whom a trusted proxy names as its client. */

const trusted = withinRanges(["10.0.0.0/8", "2001:db8:ffff::/48"]);

const clientIn = (field: string, ...values: string[]): string | undefined =>
  forwardedClient(
    [
      "Accept",
      "198.51.100.9",
      ...values.flatMap((value) => ["X-FORWARDED-For", value]),
      "X-Forwarded-Fox",
      "192.0.2.9",
    ],
    field,
    trusted,
  );
const named = (...values: string[]): string | undefined => clientIn("x-forwarded-for", ...values);

test.each<[string[], string | undefined]>([
  [[], undefined],
  [["192.0.2.7"], "192.0.2.7"],
  // Only what the last proxy that is trusted saw is believed.
  [["6.6.6.6, 192.0.2.7"], "192.0.2.7"],
  [["6.6.6.6, 192.0.2.7, 10.0.0.2,10.0.0.3"], "192.0.2.7"],
  [["6.6.6.6", "192.0.2.7, 10.0.0.2", "10.0.0.3"], "192.0.2.7"],
  [["10.9.9.9, 192.0.2.7"], "192.0.2.7"],
  // Where every one is trusted, the first is the client.
  [["10.0.0.1, 10.0.0.2"], "10.0.0.1"],
  [["10.0.0.1"], "10.0.0.1"],
  // With ports and brackets, in one form.
  [["192.0.2.7:1234"], "192.0.2.7"],
  [["2001:db8::7"], "2001:db8::7"],
  [["[2001:db8::7]"], "2001:db8::7"],
  [["[2001:DB8:0::7]:443"], "2001:db8::7"],
  [["2001:DB8:0:0::7, [2001:db8:ffff::1]:80, 10.0.0.1:65535"], "2001:db8::7"],
  [["::ffff:192.0.2.7"], "192.0.2.7"],
  [["[::ffff:c000:207]:1"], "192.0.2.7"],
  [["192.0.2.7, ::ffff:10.0.0.1"], "192.0.2.7"],
  [["::"], "::"],
  // Blanks and empty elements.
  [["\t 192.0.2.7 \t"], "192.0.2.7"],
  [["192.0.2.7,, ,"], "192.0.2.7"],
  [["192.0.2.7", ""], "192.0.2.7"],
  [[","], undefined],
  [[""], undefined],
  // Nothing is concluded from what is no address.
  ...[
    ...[
      "unknown",
      "-",
      "_hidden",
      "localhost",
      "192.0.2",
      "192.0.2.256",
      "192.0.2.07",
      "192.0.2.7:",
      "192.0.2.7:x",
    ],
    ...[
      "192.0.2.7:123456",
      "192.0.2.7 10.0.0.1",
      "192.0.2.7/24",
      "[192.0.2.7]",
      "[192.0.2.7]:1",
      "[2001:db8::7",
    ],
    ...[
      "2001:db8::7]",
      "[2001:db8::7]443",
      "[2001:db8::7]:",
      "[]",
      "[]:1",
      "[[::1]]",
      "2001:db8::7::",
      ":::",
      ":",
    ],
    ...[
      "fe80::1%eth0",
      "[fe80::1%eth0]:1",
      '"[2001:db8::7]"',
      "for=192.0.2.7",
      "0x7f.1",
      "1",
      "%",
      "\xff",
      "\xa7",
    ],
  ].flatMap((odd): [string[], string | undefined][] => [
    [[odd], undefined],
    [[`192.0.2.7, ${odd}`], undefined],
    [[`192.0.2.7, ${odd}, 10.0.0.1`], undefined],
    [["192.0.2.7", odd, "10.0.0.1"], undefined],
    // What is in front of the client is its own word.
    [[`${odd}, 192.0.2.7, 10.0.0.1`], "192.0.2.7"],
  ]),
])("%j is %p", (values, client) => {
  expect(named(...values)).toBe(client);
});

test("any other field may name it", () => {
  expect(clientIn("x-forwarded-fox", "192.0.2.7")).toBe("192.0.2.9");
  expect(clientIn("x-forwarded", "192.0.2.7")).toBeUndefined();
});

test("64 proxies in a row are enough", () => {
  const hops = (count: number): string[] => new Array<string>(count).fill("10.0.0.1");
  expect(named(["192.0.2.7", ...hops(63)].join(", "))).toBe("192.0.2.7");
  expect(named(["192.0.2.7", ...hops(64)].join(", "))).toBeUndefined();
  expect(named("192.0.2.7", ...hops(64))).toBeUndefined();
  expect(named(`192.0.2.7${",".repeat(64)}`)).toBeUndefined();
});

test.each(["10.0.0.1,", ",", " ", "1", "[", ":", "6.6.6.6,"])(
  "of a long list of %j little is looked at",
  (part) => {
    const list = part.repeat(100_000);
    const looked = jest.fn(trusted);
    for (const headers of [
      ["a", list],
      ["a", `${list}10.0.0.1`],
      new Array<string[]>(1000).fill(["a", part]).flat(),
    ])
      forwardedClient(headers, "a", looked);
    expect(looked.mock.calls.length).toBeLessThanOrEqual(3 * 64);
  },
);
