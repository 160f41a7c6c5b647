import { inspect } from "node:util";
import { problem, ProblemError } from "../../src/model/index.js";

test("an uncaught error says each problem once, as Node prints it", () => {
  const error = new ProblemError([problem("config.missing-field", "stack/h.address", "is missing")]);
  expect(inspect(error).match(/config\.missing-field|is missing/g)).toEqual([
    "is missing",
    "config.missing-field",
  ]);
  expect(error.problems).toHaveLength(1);
});
