import { printable, printableValue } from "../../src/model/text/printable.js";

test.each([
  ["a\tb\nc", "a\tb\nc", "a\\tb\\nc"],
  ["\0\x08\x1f\x9f", "\\u0000\\u0008\\u001f\\u009f", "\\u0000\\u0008\\u001f\\u009f"],
  ["\u202e\u2066", "\\u202e\\u2066", "\\u202e\\u2066"],
  [" ~\xa0\u2027\u202f", " ~\xa0\u2027\u202f", " ~\xa0\u2027\u202f"],
])("%j is printed as %j, and on one line as %j", (text, printed, onOneLine) => {
  expect([printable(text), printableValue(text)]).toEqual([printed, onOneLine]);
});
