import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { bootHost, Namespace, type TestHost } from "./harness/index.js";
import { eventually } from "../../testkit/waiting.js";

/** The test hosts themselves: what other tests take for granted. */
let host: TestHost;

beforeAll(async () => {
  host = await bootHost({ name: "smoke" });
}, 600_000);

afterAll(async () => {
  await host?.stop();
  if (host !== undefined) expect(existsSync(host.folder)).toBe(false);
});

test("runs systemd as process 1, with no failed unit and only sshd listening", async () => {
  expect((await host.must("cat /proc/1/comm")).trim()).toBe("systemd");
  expect((await host.must("hostname")).trim()).toBe("smoke");
  expect(await host.must("ss -Hltn | awk '{print $4}' | sort")).toBe("0.0.0.0:22\n[::]:22\n");
  expect((await host.run("exit 3")).code).toBe(3);
  await expect(host.must("echo no >&2; false")).rejects.toThrow("no");
});

test("is reached from outside over ssh with its key, at both addresses, with a known host key", async () => {
  const outside = await host.outside();
  const known = `${host.folder}/known_hosts`;
  for (const address of [host.address, host.address6]) {
    await host.must("true");
    const ssh = `ssh -i ${host.sshKey} -o BatchMode=yes -o UserKnownHostsFile=${known} root@${address} hostname`;
    expect((await outside.run(ssh)).code).not.toBe(0);
    await outside.must(`echo '${address} ${await host.hostKey()}' >> ${known}`);
    expect(await outside.must(ssh)).toBe("smoke\n");
  }
});

test("accepts files with their modes, also large ones", async () => {
  await host.copyIn(process.execPath, "/opt/tools/node", "0755");
  expect(await host.must("/opt/tools/node -p 1+1")).toBe("2\n");
  await host.write("/etc/an odd place/file", "text\n", "0600");
  expect(await host.must("stat -c '%a %U' '/etc/an odd place/file'")).toBe("600 root\n");
});

test("survives a reboot and a power cut", async () => {
  const bootId = (): Promise<string> => host.must("systemctl show -P UserspaceTimestampMonotonic");
  await host.must("echo kept > /root/kept; echo lost > /run/lost");
  const before = await bootId();
  await host.reboot();
  expect(await bootId()).not.toBe(before);
  expect(await host.must("cat /root/kept; ls /run/lost 2>&1 || true")).toMatch(/^kept\n.*No such file/);
  await host.powerCut();
  expect(await host.must("cat /root/kept")).toBe("kept\n");
  const outside = await host.outside();
  for (const address of [host.address, host.address6]) await outside.must(`: < /dev/tcp/${address}/22`);
});

test("a second host and a client at the end of a cable run at the same time", async () => {
  const second = await bootHost({ name: "second", address6: null });
  const client = await Namespace.create();
  try {
    await client.connect(
      await second.outside(),
      { name: "wire", addresses: ["203.0.113.77/24"] },
      { name: "client", bridge: "lan" },
    );
    await client.must(`: < /dev/tcp/${second.address}/22`);
    expect(await client.must("ip -brief link | awk '{print $1}'")).toMatch(/^lo\nwire@\w+\n$/);
    expect(await host.must("hostname")).toBe("smoke\n");
  } finally {
    client.remove();
    await second.stop();
  }
});

test("a host of a test that was killed is gone, and the next one cleans up after it", async () => {
  const boot = `require(${JSON.stringify(join(__dirname, "harness/index.ts"))})
    .bootHost({ name: "orphan" }).then((host) => console.log(host.folder))`;
  const test = spawn("npx", ["--no-install", "tsx", "--eval", boot], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const folder = await new Promise<string>((done) =>
    test.stdout.once("data", (data) => done(String(data).trim())),
  );
  // The folder names the process that booted it; npx is only its parent.
  process.kill(Number(/portico-host-(\d+)/.exec(folder)![1]), "SIGKILL");
  const processes = async (): Promise<string> => (await host.outside()).must("ps -eo args");
  await eventually(async () => !(await processes()).includes(folder), "until its processes are gone", {
    everyMs: 100,
  });
  expect(existsSync(folder)).toBe(true);
  const next = await bootHost({ name: "next", address6: null });
  await next.stop();
  expect(existsSync(folder)).toBe(false);
});
