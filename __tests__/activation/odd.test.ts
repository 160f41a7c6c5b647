import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { statusOf } from "../../src/activation/serviceManager.js";
import { undoEdit } from "../../src/activation/settingsEdits.js";
import { Store } from "../../src/activation/store.js";
import { Site } from "./site.js";

test.each([
  ["active", "running", true],
  ["reloading", "reload", true],
  ["activating", "start", true],
  // It died, and systemd waits until it starts it again: a reload would be refused, and nobody serves.
  ["activating", "auto-restart", false],
  ["activating", "auto-restart-queued", false],
  ["inactive", "dead", false],
  ["failed", "failed", false],
])("a unit that is %s (%s) runs: %s", (state, sub, active) => {
  const shown = `LoadState=loaded\nActiveState=${state}\nSubState=${sub}\nUnitFileState=enabled`;
  expect(statusOf(shown)).toEqual({ known: true, active, failed: state === "failed", enabled: true });
});

describe("an edit is taken back to the byte, or not at all", () => {
  const hash = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
  const PATH = "/opt/sync/conf/sync.conf";

  /** The replaced value was not UTF-8, all else is: the file is UTF-8 after the edit, but was none before. */
  const before = Buffer.concat([
    Buffer.from("# f\u00fcr alle\nA = "),
    Buffer.from([0xff, 0xfe]),
    Buffer.from("\n"),
  ]);
  const after = Buffer.from("# f\u00fcr alle\nA = new\n");
  const from = before.indexOf(0xff);

  test.each([
    ["before was no UTF-8", { from, to: from + 3, text: "\u00ff\u00fe" }, before, undefined],
    [
      "the record does not fit",
      { from: from - 1, to: from + 3, text: "\u00ff\u00fe" },
      after,
      "activation.not-restored",
    ],
  ])("%s", async (_name, undo, left, code) => {
    const site = new Site();
    try {
      site.write(PATH, "");
      writeFileSync(site.at(PATH), after);
      const edit = {
        file: "networkDaemon",
        path: PATH,
        before: hash(before),
        after: hash(after),
        undo: [undo],
      } as const;
      const refused = await undoEdit(new Store(site.root), edit);
      expect(refused?.code).toBe(code);
      expect(readFileSync(site.at(PATH))).toEqual(left);
    } finally {
      site.remove();
    }
  });
});
