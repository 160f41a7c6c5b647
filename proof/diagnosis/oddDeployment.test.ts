import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { run } from "../../src/cli/program.js";
import { gather } from "../../src/diagnosis/gather.js";
import { diagnose, unreadable } from "../../src/diagnosis/rows.js";
import { siteConfig } from "../kit/siteConfig.js";

describe("words of doctor", () => {
  let folder: string;
  beforeEach(() => (folder = mkdtempSync(path.join(tmpdir(), "portico doctor "))));
  afterEach(() => rmSync(folder, { recursive: true, force: true }));
  const elsewhere = (configFile: string, connect: string) =>
    gather({
      deploymentFile: path.join(folder, "none"),
      configFile,
      place: "elsewhere",
      connect,
      publicAddresses: [],
      insecure: true,
      timeoutMs: 2_000,
    });

  test("a document that is not JSON is named", async () => {
    const file = path.join(folder, "portico.json");
    writeFileSync(file, "{");
    const gathered = await elsewhere(file, "127.0.0.1");
    const rows = gathered.ok ? [] : unreadable(gathered.problems, undefined);
    expect(rows.map(({ evidence }) => evidence)).toEqual([[expect.stringContaining(`${file}: is not JSON`)]]);
  });

  test("a name without an address is not reported as a closed port", async () => {
    const file = path.join(folder, "portico.json");
    writeFileSync(file, JSON.stringify(siteConfig({ mode: "plain" })));
    const gathered = await elsewhere(file, "no-such-host.invalid");
    const rows = gathered.ok ? diagnose(gathered.value) : [];
    const ports = rows.find(({ id }) => id === "ports");
    expect(ports).toMatchObject({
      status: "failed",
      cause: "no-such-host.invalid has no address: the name does not resolve here",
      fix: expect.stringContaining("--connect"),
    });
    expect(rows.filter(({ status }) => status === "failed").map(({ id }) => id)).toEqual(["ports"]);
  });

  test.each(["127.0.0.1", "::1", "files.example.org"])("%s is not a public address", async (address) => {
    let err = "";
    const output = { out: () => undefined, err: (text: string) => void (err += text) };
    expect(await run(["doctor", "--elsewhere", "--public-address", address], output)).toBe(2);
    expect(err).toMatch(/only the host itself can reach that|give an IP address/);
  });
});
