import { accepting, type TextRule } from "./textRule.js";

/** An absolute path in normal form: no `//`, `.` or `..` segments, no control characters. */
export const FILE_PATH: TextRule = {
  pattern: "^/[^\\x00-\\x1f\\x7f]*$",
  never: "//|/\\.\\.?(?:/|$)",
};

/** True for an absolute path in normal form. */
export const isFilePath = accepting(FILE_PATH);
