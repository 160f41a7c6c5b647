import { belowDirectory, isFileMethod, restBelow } from "../../src/model/actions/staticPath.js";
import { CONNECT_REFUSAL, isBodyTooLong, TRACE_REFUSAL } from "../../src/model/refusals.js";

test.each([
  ["segment", "/media", "/media", ""],
  ["segment", "/media", "/media/", "/"],
  ["segment", "/media", "/media/a/b", "/a/b"],
  ["segment", "/media/", "/media/", "/"],
  ["prefix", "/media/", "/media/a", "/a"],
  ["prefix", "/media", "/media", ""],
  ["prefix", "/media", "/media2/a", undefined],
  ["prefix", "/media", "/media2/a/", undefined],
  ["exact", "/media", "/media", "/"],
  ["exact", "/media/", "/media/", "/"],
  ["segment", "/", "/a", "/a"],
] as const)("of a %s route %s, the path %s names %j", (match, route, path, rest) => {
  expect(restBelow({ match, path: route }, path)).toBe(rest);
});

test("files are below the root as below any directory, and respond to GET and HEAD", () => {
  expect(["/", "/srv"].map(belowDirectory)).toEqual(["", "/srv"]);
  expect(["GET", "HEAD", "POST", "get", ""].filter(isFileMethod)).toEqual(["GET", "HEAD"]);
});

test("requests that are refused whatever their route", () => {
  expect([CONNECT_REFUSAL.status, TRACE_REFUSAL.status]).toEqual([400, 405]);
  const sizes = [0, 9, 10, 11];
  expect(sizes.filter((bytes) => isBodyTooLong(bytes, 10))).toEqual([11]);
  expect(sizes.filter((bytes) => isBodyTooLong(bytes, 0))).toEqual([]);
});
