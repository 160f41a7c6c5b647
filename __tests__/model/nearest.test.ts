import { nearest } from "../../src/model/nearest.js";

/** Names as they are misspelt, each with the one that was probably meant. */
test.each<[string, readonly string[], string | undefined]>([
  ["adress", ["address", "port"], "address"],
  ["httpPrt", ["httpPort", "httpsPort"], "httpPort"],
  ["stopTimeoutSecond", ["stopTimeoutSeconds", "openFilesMax"], "stopTimeoutSeconds"],
  ["Address", ["port", "address"], "address"],
  // Nearer by its letters is `config`, which was hardly meant.
  ["logDir", ["config", "runtime", "logDirectory", "logRotation"], "logDirectory"],
  ["host", ["port", "name"], undefined],
  ["maxConnections", ["connectionsMax", "headBytesMax"], undefined],
  ["x", [], undefined],
])("%s among %j: %s", (word, known, meant) => {
  expect(nearest(word, known)).toBe(meant);
});
