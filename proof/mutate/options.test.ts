import { parseOptions } from "./options.js";

test("without options: a hundred faults of a seed that nobody chose, tried by all tests", () => {
  const { seeds, lanes, ...rest } = parseOptions([]);
  expect(rest).toEqual({
    help: false,
    count: 100,
    area: undefined,
    tests: /(?:)/,
    near: false,
    record: false,
    again: false,
    progress: undefined,
  });
  expect(seeds).toHaveLength(1);
  expect(seeds).not.toEqual(parseOptions([]).seeds);
  expect(lanes % 3).toBe(0);
  expect(parseOptions(["--seed", "0,12"]).seeds).toEqual([0, 12]);
});

test.each([
  [["--count", "x"], "--count x: give a whole number from 1"],
  [["--count", "0"], "--count 0: give a whole number from 1"],
  [["--count="], "--count : give a whole number from 1"],
  [["--lanes", "1.5"], "--lanes 1.5: give a whole number from 1"],
  [["--seed", "1,b"], "--seed b: give a whole number from 0"],
  [["--area", "modell"], "--area modell: give one of model, http1, http2, "],
  [["--tests", "("], "--tests (: Invalid regular expression"],
  [["--record", "--near"], "leave out --near and --tests"],
  [["--record", "--tests", "model"], "leave out --near and --tests"],
  [["--cuont", "9"], "Unknown option '--cuont'"],
])("%j is wrong usage", (args, message) => {
  expect(() => parseOptions(args)).toThrow(message);
});
