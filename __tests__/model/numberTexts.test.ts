import { bytesText, countText, daysText, durationText } from "../../src/model/numberTexts.js";

test.each([
  [0, "0 B"],
  [999, "999 B"],
  [1_000, "1 kB"],
  [1_234, "1.23 kB"],
  [9_994, "9.99 kB"],
  [9_995, "10 kB"],
  [99_949, "99.9 kB"],
  [99_950, "100 kB"],
  [999_499, "999 kB"],
  [999_500, "1 MB"],
  [45_678_000, "45.7 MB"],
  [999_600_000, "1 GB"],
  [2e12, "2 TB"],
  [1.5e18, "1500 PB"],
  [-5, "0 B"],
])("%d bytes are %s", (bytes, text) => {
  expect(bytesText(bytes)).toBe(text);
});

test.each([
  [0, "0"],
  [0.001, "0"],
  [0.006, "0.01"],
  [0.25, "0.25"],
  [12.44, "12.4"],
  [100.4, "100"],
  [10, "10"],
  [999.4, "999"],
  [999.5, "1\u202f000"],
  [1_002_003, "1\u202f002\u202f003"],
  [1_234_567, "1\u202f234\u202f567"],
])("a count of %d is %s", (count, text) => {
  expect(countText(count)).toBe(text);
});

test.each([
  [-1, "0 s"],
  [59_999, "59 s"],
  [60_000, "1 min"],
  [3_599_999, "59 min 59 s"],
  [3_600_000, "1 h"],
  [86_399_999, "23 h 59 min"],
  [86_400_000, "1 d"],
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
  [-1, "1 day ago"],
  [-3, "3 days ago"],
])("%d days are %s", (days, text) => {
  expect(daysText(days)).toBe(text);
});
