import { startEveryProtocol } from "../../testkit/everyProtocol.js";
import { exchange, RawUpstream, responding } from "../../testkit/peers.js";
import { LogFile } from "../../src/runtime/logs/logFile.js";
import { RequestWriter } from "../../src/runtime/upstream/requestWriter.js";

// The folders of `src/runtime` that a request passes, as ARCHITECTURE.md draws them.

/** Folders on the call stack, the first caller first; one that is called and returns is not on it. */
function foldersOnStack(): string[] {
  const holder: { stack?: string } = {};
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = Infinity;
  Error.captureStackTrace(holder);
  Error.stackTraceLimit = stackTraceLimit;
  const files = holder.stack!.split("\n").filter((line) => !line.includes("sockets/guarded.ts"));
  return files.flatMap((line) => /src\/runtime\/(\w+)\//.exec(line)?.[1] ?? []).reverse();
}

const passed = (folders: readonly string[]): string[] =>
  folders.filter((folder, i) => folder !== folders[i - 1]);

afterEach(() => jest.restoreAllMocks());

test("a GET crosses 14 boundaries between folders, from accept to its log line", async () => {
  const stacks: Record<string, string[]> = {};
  const seen = <T extends object>(of: T, method: keyof T & string, name: string): void => {
    const own = of[method] as (...args: unknown[]) => unknown;
    jest.spyOn(of, method as never).mockImplementation(function (this: unknown, ...args: unknown[]) {
      stacks[name] = foldersOnStack();
      return own.apply(this, args);
    } as never);
  };
  const upstream = await new RawUpstream(
    responding("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
  ).listen();
  const action = { type: "proxy" as const, upstream: "web" };
  const front = await startEveryProtocol({
    routes: [{ name: "web", path: "/", action }],
    upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}` }],
  });
  seen(RequestWriter.prototype, "flush", "sent");
  seen(LogFile.prototype, "append", "logged");
  expect((await exchange(front.plainPort, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")).status).toBe(200);
  await front.close();
  await upstream.close();
  const path = passed(["listen", "server", ...stacks.sent!, ...stacks.logged!]);
  expect(path.join(" ")).toBe(
    "listen server sockets server dispatch actions upstream actions upstream sockets upstream actions server dispatch logs",
  );
});
