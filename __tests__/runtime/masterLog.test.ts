import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { problem } from "../../src/model/index.js";
import { MasterLog } from "../../src/runtime/supervisor/report/masterLog.js";
import { loopback, oneServerConfig } from "../../testkit/oneServer.js";

/** Messages of the master, on standard error and in the error log. */

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "portico-process-"))));
afterEach(() => rmSync(folder, { recursive: true }));

describe("what the master says", () => {
  let text: string;
  beforeEach(() => {
    text = "";
    jest.spyOn(process.stderr, "write").mockImplementation((chunk) => {
      text += String(chunk);
      return true;
    });
  });
  afterEach(() => jest.restoreAllMocks());
  const p = problem("listen.failed", "p", "m", { received: "r", fix: "f" });
  const logged = (name: string): string[] =>
    readFileSync(join(folder, name), "utf8")
      .replace(/^.* (\[\w+\]) \d+#\d+: /gm, "$1 ")
      .split("\n")
      .slice(0, -1);
  const withLog = (error: { path: string } | { stream: "stderr" } | "off") =>
    oneServerConfig({ listeners: [loopback("http", 80)], routes: [], logs: { error } });

  test("is on standard error, and in the error log if that is a file", async () => {
    const logs = new MasterLog(true);
    logs.write("info", "before");
    await logs.use(withLog({ path: join(folder, "one.log") }));
    logs.write("info", "first");
    logs.warn(p);
    logs.refuse("refused", [p, p]);
    await logs.use(withLog({ path: join(folder, "two.log") }));
    logs.write("crit", "second");
    renameSync(join(folder, "two.log"), join(folder, "old.log"));
    mkdirSync(join(folder, "two.log"));
    logs.reopen();
    await logs.use(withLog({ stream: "stderr" }));
    logs.write("info", "third");
    await logs.use(withLog("off"));
    logs.write("info", "fourth");
    await logs.close();
    const line = expect.stringMatching(/^\[error\] .*p.*m.*; f$/) as string;
    expect(logged("one.log")).toEqual([
      ...["[info] first", expect.stringMatching(/^\[warn\] .*p.*m.*; f$/), "[error] refused: 2 problems"],
      ...[line, line],
    ]);
    const failed = `${join(folder, "two.log")}: cannot be opened for appending (21: Illegal operation on a directory)`;
    expect(logged("old.log")).toEqual(["[crit] second", `[error] ${failed}`]);
    expect(text.split("\n").filter((one) => one.startsWith("portico: "))).toEqual([
      ...["portico: before", "portico: first", expect.stringMatching(/^portico: warning: p.*m/)],
      ...["portico: refused: 2 problems", "portico: second", `portico: ${failed}`],
      ...["portico: third", "portico: fourth"],
    ]);
  });
});
