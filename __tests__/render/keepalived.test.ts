import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "../../testkit/waiting.js";
import { keepalivedUnit, readinessUnit, renderKeepalived, renderUnit } from "../../src/render/index.js";
import { expectGolden } from "./golden.js";

const INPUT = {
  interface: "eth0",
  address: "192.0.2.11",
  peer: "192.0.2.12",
  virtualAddress: "192.0.2.20",
  virtualRouterId: 51,
  priority: 101,
  advertisementMs: 200,
};

test("what keepalived and systemd get", () => {
  expectGolden("keepalived.conf", renderKeepalived(INPUT));
  const health = { address: "127.0.0.1", port: 9180 };
  expectGolden("portico-ready.service", renderUnit(readinessUnit(health)));
  const unit = keepalivedUnit("/usr/sbin/keepalived", "/etc/portico/keepalived.conf");
  expectGolden("portico-address.service", renderUnit(unit));
});

const hasKeepalived = spawnSync("keepalived", ["--version"]).status === 0;
const isThere = ([, all]: [string, { internal: boolean }[] | undefined]): boolean =>
  all?.[0]?.internal === false;
const device = Object.entries(networkInterfaces()).find(isThere)?.[0];

(hasKeepalived && device !== undefined ? describe : describe.skip)("keepalived itself", () => {
  const folder = mkdtempSync(join(tmpdir(), "portico-keepalived-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  const said = (input: Partial<typeof INPUT>): [number | null, string] => {
    const file = join(folder, "keepalived.conf");
    writeFileSync(file, renderKeepalived({ ...INPUT, ...input }));
    const { status, stderr } = spawnSync("keepalived", ["--config-test", `--use-file=${file}`]);
    return [status, String(stderr)];
  };

  test.each([10, 200, 1_000, 10_000])("takes it with an advertisement every %d ms", (advertisementMs) => {
    expect(said({ interface: device!, advertisementMs })).toEqual([0, ""]);
  });

  test("refuses an interface that the host does not have", () => {
    expect(said({ interface: "absent0" })).toEqual([5, expect.stringContaining("absent0")]);
  });
});

describe("the watch on readiness", () => {
  const folder = mkdtempSync(join(tmpdir(), "portico-ready-"));
  const file = join(folder, "state");
  const state = (): string => readFileSync(file, "utf8");
  let response = "HTTP/1.1 200 OK\r\n\r\n";
  let server: Server;
  let shell: ChildProcess;
  let asked = "";

  const listen = (port = 0): Promise<number> =>
    new Promise((done) => {
      server = createServer((socket) => {
        socket.on("error", () => undefined);
        let request = "";
        socket.on("data", (data) => {
          request += String(data);
          // The shell writes it line by line.
          if (!request.endsWith("\r\n\r\n")) return;
          asked = request;
          if (response !== "") socket.end(response);
        });
      });
      server.listen(port, "127.0.0.1", () => done((server.address() as { port: number }).port));
    });
  const becomes = (expected: string): Promise<void> =>
    eventually(async () => state() === expected, `until it is ${expected}`, { ms: 5_000, everyMs: 20 });

  afterAll(() => {
    shell.kill("SIGKILL");
    server.close();
    rmSync(folder, { recursive: true });
  });

  test("follows the responses of /readyz", async () => {
    const port = await listen();
    writeFileSync(file, "");
    const { Service } = readinessUnit({ address: "127.0.0.1", port });
    const { command } = Service!["ExecStart"] as { readonly command: readonly string[] };
    const [program, ...args] = command.map((word) => (word === "/run/portico-ready/state" ? file : word));
    // Without systemd, nobody is notified.
    shell = spawn(program!, args, { env: { PATH: process.env["PATH"] }, stdio: "ignore" });
    await becomes("0\n");
    expect(asked).toBe("GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    response = "HTTP/1.1 503 Service Unavailable\r\n\r\n";
    await becomes("1\n");
    response = "HTTP/1.1 200 OK\r\n\r\n";
    await becomes("0\n");
    // Nobody listens any more.
    await new Promise((done) => server.close(done));
    await becomes("1\n");
    await listen(port);
    await becomes("0\n");
    // It does not respond.
    response = "";
    await becomes("1\n");
    // It runs no program while it watches.
    const children = readFileSync(`/proc/${shell.pid}/task/${shell.pid}/children`, "utf8");
    expect(children.trim()).toBe("");
  });
});
