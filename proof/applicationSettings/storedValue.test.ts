import { readStoredValue } from "../../src/host/applicationSettings/databaseOverrides.js";

/** Pickles of one string, byte by byte as pickletools has them; everything else is not read. */
test.each<[what: string, hex: string, text: string | undefined]>([
  ["BINUNICODE", "80035801000000612e", "a"],
  ["without a protocol", "5801000000612e", "a"],
  ["an empty one", "800358000000002e", ""],
  ["one that is cut off", "8003580000002e", undefined],
  ["one whose length is cut off", "80035800002e", undefined],
  ["one that is too long", "80035802000000612e", undefined],
  ["one that ends with the pickle", "80035802000000612e2e", "a."],
  ["one to the very end", "80035803000000612e2e", undefined],
  ["SHORT_BINUNICODE", "80048c01612e", "a"],
  ["a short one that is empty", "80048c002e", ""],
  ["a short one without its length", "80048c2e", undefined],
  ["in a frame", "8004950500000000000000" + "8c0161942e", "a"],
  ["MEMOIZE", "80048c0161942e", "a"],
  ["BINPUT", "80048c016171002e", "a"],
  ["LONG_BINPUT", "80048c016172000000002e", "a"],
  ["LONG_BINPUT that is cut off", "80048c0161720000002e", undefined],
  ["two memos", "80048c016194942e", undefined],
  ["a memo, and more", "80048c0161942e2e", undefined],
  ["no end", "80048c016194", undefined],
  ["UNICODE", Buffer.from("V/a\np0\n.").toString("hex"), "/a"],
  ["UNICODE with an escape", Buffer.from("V/a\\u0041\np0\n.").toString("hex"), undefined],
  ["UNICODE that is no URL", Buffer.from("Vsee /a\np0\n.").toString("hex"), undefined],
  ["UNICODE with nothing in it", "562e", undefined],
  ["UNICODE without an end", Buffer.from("V/a\np0\n").toString("hex"), undefined],
  ["another opcode", "80044b012e", undefined],
])("%s", (_what, hex, text) => {
  const stored = Buffer.from(Buffer.from(hex, "hex").toString("base64"));
  expect(readStoredValue(stored)).toEqual(
    text === undefined ? { kind: "unreadable" } : { kind: "text", text },
  );
});
