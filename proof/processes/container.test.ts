import { randomBytes } from "node:crypto";
import { chmodSync, chownSync, readdirSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import { request } from "node:https";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { everywhere, fixed, loopback, oneServer } from "../../testkit/oneServer.js";
import { issue } from "../../testkit/certificates.js";
import { mountSecret } from "../../testkit/mountedSecret.js";
import { killAll, openFolder, Portico, workersOf } from "../../testkit/portico.js";
import { freePorts, isRefused } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";
import type { ProxyConfigInput } from "../../src/model/index.js";

/** The runtime as a container runs it: as its first process, a user that has only a number, and nothing to write to. */

const USER = 65_532;
const GROUP = 3_000;

afterEach(() => killAll());

/**
 * Everything below is read-only, temporary directories too; no capability, and no way to one.
 * Suites beside this one mount below paths with spaces: names are read as lines, and without findmnt's escapes (no `-r`).
 */
const CONTAINED = [
  "exec unshare --mount --pid --fork --mount-proc --kill-child sh -c '" +
    "findmnt -lno TARGET -t ext4,xfs,btrfs,overlay,tmpfs | " +
    // A test beside this one may have removed a mount point since it was listed.
    'while IFS= read -r at; do mount -o remount,bind,ro "$at" 2>/dev/null || ! mountpoint -q "$at" || ' +
    'echo "$at stays writable" >&2; done; cd /;' +
    `exec setpriv --reuid ${USER} --regid ${USER} --groups ${GROUP} --no-new-privs --bounding-set=-all "$0" "$@"'`,
  '"$0" "$@"',
].join(" ");

function secretFor(files: Readonly<Record<string, string>>): string {
  const secret = join(openFolder(), "secret");
  mountSecret(secret, files, 0o440);
  // As kubelet does for `fsGroup`.
  for (const version of readdirSync(secret).filter((name) => name.startsWith("..2026_")))
    for (const name of Object.keys(files)) chownSync(join(secret, version, name), 0, GROUP);
  return secret;
}

function config(secret: string, http: number, https: number): ProxyConfigInput {
  const policy = "mozilla-intermediate";
  const tls = { certificate: join(secret, "tls.crt"), key: join(secret, "tls.key"), policy } as const;
  return oneServer({
    workers: 2,
    logs: { access: { stream: "stdout" }, error: { stream: "stderr" } },
    ticketKeys: { file: join(secret, "tickets") },
    listeners: [loopback("http", http), loopback("https", https, tls)],
    server: { serverNames: ["localhost"] },
    routes: [fixed("here")],
  });
}

function slowConfig(http: number, upstreamPort: number): ProxyConfigInput {
  return oneServer({
    logs: { access: "off", error: { stream: "stderr" } },
    listeners: [loopback("http", http)],
    upstreams: [{ name: "slow", url: `http://127.0.0.1:${upstreamPort}` }],
    server: { serverNames: ["localhost"] },
    routes: [everywhere({ type: "proxy", upstream: "slow" })],
  });
}

function statusOverTls(port: number): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const options = { port, host: "127.0.0.1", rejectUnauthorized: false, agent: false };
    request(options, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .on("error", reject)
      .end();
  });
}

test("starts, serves, reloads and stops without a word of complaint", async () => {
  const [http, https] = (await freePorts(2)) as [number, number];
  const { key, cert } = await issue({ type: "ec", names: ["localhost"] });
  const tickets = randomBytes(48).toString("base64");
  const secret = secretFor({ "tls.key": key, "tls.crt": cert, tickets });
  const env = { HOME: undefined, USER: undefined, TMPDIR: undefined, RUNTIME_DIRECTORY: undefined };
  const portico = await Portico.start(config(secret, http, https), { before: CONTAINED, env });
  expect(portico.errors).toBe("");
  const [master] = workersOf(portico.pid) as [number];
  expect(workersOf(master)).toHaveLength(2);
  expect((await fetch(`http://127.0.0.1:${http}/`, { headers: { connection: "close" } })).status).toBe(200);
  expect(await statusOverTls(https)).toBe(200);

  const signal = (name: NodeJS.Signals): boolean => process.kill(master, name);
  signal("SIGHUP");
  await portico.says(/configuration reloaded/);
  expect(portico.errors).toMatch(/^portico: configuration reloaded: .*\n$/);
  // Its end would be the end of the container, and of every request in it.
  signal("SIGUSR2");
  await portico.says(/upgrade refused; the running portico continues/);
  expect(portico.errors).toContain(
    "cannot upgrade: portico is the first process of its container [serve.upgrade-failed]",
  );
  expect(await statusOverTls(https)).toBe(200);
  // A worker that dies is replaced, and leaves no zombie.
  await eventually(() => workersOf(master).length === 2, "for the old workers to go");
  process.kill(workersOf(master)[0]!, "SIGKILL");
  await portico.says(/a replacement starts/);
  await eventually(() => workersOf(master).length === 2, "for a new worker");
  expect(await statusOverTls(https)).toBe(200);
  signal("SIGTERM");
  await portico.gone;
  expect(portico.code).toBe(0);
});

test("finishes what it has, however often it is asked to stop", async () => {
  const [http, upstreamPort] = (await freePorts(2)) as [number, number];
  const owed: ServerResponse[] = [];
  const upstream = createServer((_, response) => void owed.push(response)).listen(upstreamPort, "127.0.0.1");
  try {
    const portico = await Portico.start(slowConfig(http, upstreamPort), { before: CONTAINED });
    const [master] = workersOf(portico.pid) as [number];
    const response = fetch(`http://127.0.0.1:${http}/`);
    await eventually(() => owed.length === 1, "for the upstream to be asked");
    // The second one comes of an engine that was started again meanwhile.
    process.kill(master, "SIGTERM");
    await eventually(() => isRefused(http), "for the port to be closed");
    process.kill(master, "SIGTERM");
    await sleep(300);
    owed[0]!.end("late");
    expect(await (await response).text()).toBe("late");
    await portico.gone;
    expect(portico.code).toBe(0);
  } finally {
    upstream.close();
  }
});

test("says which secret its user may not read, and how to let it", async () => {
  const [http, https] = (await freePorts(2)) as [number, number];
  const { key, cert } = await issue({ type: "ec", names: ["localhost"] });
  const secret = secretFor({ "tls.key": key, "tls.crt": cert, tickets: randomBytes(48).toString("base64") });
  chmodSync(secret, 0o700);
  const portico = await Portico.start(config(secret, http, https), { before: CONTAINED });
  await portico.gone;
  expect(portico.code).toBe(1);
  expect(portico.errors).toContain(`cannot be read: no permission on ${secret} for user ${USER}`);
});
