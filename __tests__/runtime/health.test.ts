import { Health, type NotReady } from "../../src/runtime/supervisor/listeners/health.js";
import { freePort } from "../../testkit/ports.js";

/** Whether the master accepts connections. */

describe("health", () => {
  test("ends a minute after nobody accepts, and is back when somebody does", async () => {
    const at = { address: "127.0.0.1", port: await freePort(), anyAddress: false };
    let state: NotReady | undefined;
    // Whole, so that a minute more is exactly a minute more.
    let now = Math.round(performance.now());
    const clock = jest.spyOn(performance, "now").mockImplementation(() => now);
    const health = new Health(() => state, { warn: () => undefined });
    const asked = async (path: string): Promise<string> => {
      const response = await fetch(`http://127.0.0.1:${at.port}${path}`);
      const { status, headers } = response;
      const fields = ["content-type", "cache-control", "connection", "allow"].map((name) =>
        headers.get(name),
      );
      expect(fields).toEqual(["text/plain; charset=utf-8", "no-store", "close", null]);
      return `${status} ${await response.text()}`;
    };
    try {
      await health.settle(at);
      expect([await asked("/healthz"), await asked("/readyz?x")]).toEqual(["200 ok\n", "200 ready\n"]);
      state = "no worker accepts connections";
      const nobody = `503 ${state}\n`;
      expect([await asked("/healthz"), await asked("/readyz")]).toEqual(["200 ok\n", nobody]);
      now += 60_000;
      expect(await asked("/healthz")).toBe("200 ok\n");
      now += 1;
      expect(await asked("/healthz")).toBe(nobody);
      state = "stopping";
      expect([await asked("/healthz"), await asked("/readyz")]).toEqual(["200 ok\n", "503 stopping\n"]);
      expect(await asked("/other")).toBe("404 not found\n");
      expect(await health.open(at)).toEqual([]);
      const [taken] = await new Health(() => undefined, { warn: () => undefined }).open(at);
      expect(taken).toMatchObject({ code: "listen.address-in-use", path: "healthListener" });
    } finally {
      clock.mockRestore();
      await health.settle(undefined);
    }
    await expect(fetch(`http://127.0.0.1:${at.port}/healthz`)).rejects.toThrow();
    // A config may ask for it again.
    await health.settle(at);
    expect(await asked("/readyz")).toBe("503 stopping\n");
    await health.settle(undefined);
  });
});
