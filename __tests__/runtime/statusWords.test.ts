import { bytesText, countText, daysText, durationText } from "../../src/runtime/status/words.js";

test.each([
  [0, "0 B"],
  [999, "999 B"],
  [1_000, "1 kB"],
  [1_234, "1.23 kB"],
  [45_678_000, "45.7 MB"],
  [999_600_000, "1 GB"],
  [1.5e18, "1500 PB"],
  [-5, "0 B"],
])("%d bytes are %s", (bytes, text) => {
  expect(bytesText(bytes)).toBe(text);
});

test.each([
  [0, "0"],
  [0.001, "0"],
  [0.25, "0.25"],
  [12.44, "12.4"],
  [100.4, "100"],
  [10, "10"],
  [1_234_567, "1\u202f234\u202f567"],
])("a count of %d is %s", (count, text) => {
  expect(countText(count)).toBe(text);
});

test.each([
  [-1, "0 s"],
  [59_999, "59 s"],
  [192_000, "3 min 12 s"],
  [7_200_000, "2 h"],
  [273_600_000, "3 d 4 h"],
])("%d ms are %s", (ms, text) => {
  expect(durationText(ms)).toBe(text);
});

test.each([
  [12, "in 12 days"],
  [1, "in 1 day"],
  [0, "within a day"],
  [-3, "3 days ago"],
])("%d days are %s", (days, text) => {
  expect(daysText(days)).toBe(text);
});
