import { inspect } from "node:util";
import { z } from "zod";
import { Untrusted } from "../../src/model/text/untrusted.js";

/** What comes from hands with fewer rights is opened by a schema, and by nothing else. */

const told = (text: string): Untrusted => new Untrusted(Buffer.from(text));

test.each<[text: string, valuesMax: number, opened: unknown]>([
  ['["a"]', 2, ["a"]],
  ['["a","b"]', 3, ["a", "b"]],
  ['["a","b"]', 2, undefined],
  ['["a,[{,\\",[{"]', 2, ['a,[{,",[{']],
  ['["\\\\","b"]', 2, undefined],
  ["[1]", 9, undefined],
  ['["a"', 9, undefined],
  ['["a"] ["b"]', 9, undefined],
  ["", 9, undefined],
])("%j with %i values at most is %j", (text, valuesMax, opened) => {
  expect(told(text).opened(z.array(z.string()), valuesMax)).toEqual(opened);
});

test("no other way leads to it: not for the compiler, nor for code that prints what it gets", () => {
  const secret = told('"secret"');
  const take = (text: string | Buffer): unknown => [text];
  // @ts-expect-error It is no text.
  take(secret);
  // @ts-expect-error It has no members that say what it is.
  take(secret.bytes);
  // @ts-expect-error Nor can it be read by JSON.
  expect(() => JSON.parse(secret)).toThrow();
  const shown = [
    JSON.stringify(secret),
    inspect(secret, { depth: 9, showHidden: true }),
    Object.keys(secret),
  ];
  expect(shown.join(" ")).not.toContain("secret");
});
