import { nearest } from "../../src/model/text/nearest.js";

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
  // Of several the nearest, wherever it stands.
  ["maxHeader", ["maxHeadersX", "maxHeaders", "maxHeaderssX"], "maxHeaders"],
  // One edit in a short word, two in six letters: a letter too few, too many, another one, two that changed places.
  ["ort", ["port"], "port"],
  ["pport", ["port"], "port"],
  ["pork", ["port"], "port"],
  ["prot", ["port"], "port"],
  ["opxt", ["port"], undefined],
  ["oprt", ["prto"], undefined],
  ["badc", ["abcd"], undefined],
  ["ab", ["bc"], undefined],
  ["ab", ["ca"], undefined],
  ["xlient", ["clienx"], "clienx"],
  ["xlienx", ["client"], "client"],
  ["xlixnx", ["client"], undefined],
  // Up to six letters more or fewer at the end, after three that are the same.
  ["log", ["logFile"], "logFile"],
  ["logFiles", ["log"], "log"],
  ["log", ["logFormat"], "logFormat"],
  ["log", ["logFormats"], undefined],
  ["log", ["fileLog"], undefined],
  ["lo", ["logFile"], undefined],
])("%s among %j: %s", (word, known, meant) => {
  expect(nearest(word, known)).toBe(meant);
});
