import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { proxyServiceUnit, renderUnit, renewalPathUnit, renewalServiceUnit } from "../../src/render/index.js";
import { issue } from "../../testkit/certificates.js";
import { releaseOfSuite } from "./harness/index.js";
import { PorticoHost } from "./porticoHost.js";
import { eventually } from "../../testkit/waiting.js";

/** The units of the proxy under a real systemd. */
let portico: PorticoHost;

beforeAll(async () => {
  portico = await PorticoHost.boot({ name: "units", release: releaseOfSuite("trixie") });
}, 600_000);

afterAll(async () => {
  await portico?.remove();
});

/** What the unit's processes said since a moment. */
const said = (since: string): Promise<string> =>
  portico.host.must(`journalctl -u portico.service --since '${since}' -o cat`);

const now = async (): Promise<string> => {
  // The journal counts whole seconds.
  await sleep(1_000);
  return (await portico.host.must("date '+%F %T'")).trim();
};

const reload = () => portico.host.run("systemctl reload portico.service");

test("are accepted by systemd without a complaint, and rated at 1.5 or better", async () => {
  const { host } = portico;
  const files = "/etc/systemd/system/portico.service /etc/systemd/system/portico.socket";
  expect(await host.run(`systemd-analyze verify ${files}`)).toEqual({ code: 0, stdout: "", stderr: "" });
  const rated = await host.must("systemd-analyze security --no-pager portico.service");
  expect(Number(/exposure level for portico.service: ([\d.]+)/.exec(rated)?.[1])).toBeLessThanOrEqual(1.5);
});

test("are started when the proxy serves, on sockets of systemd, as a user without privileges", async () => {
  const { host } = portico;
  expect(await portico.show("ActiveState")).toBe("active");
  expect(await portico.show("StatusText")).toMatch(
    /^Serving http:\/\/0\.0\.0\.0:80 .*https:\/\/\[::\]:443, 2 workers, generation 1$/,
  );
  const listening = await host.must("ss -Hltnp '( sport = 80 or sport = 443 )'");
  expect(listening).toMatch(/^(LISTEN .*"systemd",pid=1,.*\n){4}$/);
  for (const pid of [...(await portico.processes("master")), ...(await portico.processes("worker"))]) {
    const status = await host.must(`cat /proc/${pid}/status`);
    expect(status).not.toMatch(/^Uid:\s+0\b/m);
    expect(status).toMatch(/^CapEff:\s+0+$/m);
    expect(status).toMatch(/^NoNewPrivs:\s+1$/m);
  }
  for (const [address, path] of [
    [host.address, "load/small"],
    [`[${host.address6}]`, "load/small"],
  ]) {
    for (const scheme of ["http", "https"]) {
      expect((await portico.curl(`-sk '${scheme}://${address}/${path}'`)).stdout).toBe("small\n");
    }
  }
  expect((await portico.curl("-s http://HOST/media/picture.txt")).stdout).toBe("a picture\n");
  expect(await host.must("stat -Lc '%a' /var/log/portico")).toBe("750\n");
  const log = "/var/log/portico/access.log";
  await eventually(
    async () => (await host.run(`grep -q picture.txt ${log}`)).code === 0,
    "until the line is written",
    { everyMs: 100 },
  );
});

test("have a limit of memory, and the proxy says which limits of clients follow from it", async () => {
  const { host } = portico;
  const [totalKiB] = /\d+/.exec(await host.must("grep MemTotal /proc/meminfo"))!;
  const max = Number(await portico.show("MemoryMax"));
  // Half of what the host has, in whole pages.
  expect(Math.abs(max - Number(totalKiB) * 512)).toBeLessThan(65_536);
  const group = `/sys/fs/cgroup${await portico.show("ControlGroup")}`;
  const log = await host.must("cat /var/log/portico/error.log");
  // Where the machine that runs the tests has memory in the older control groups, hosts cannot limit it.
  const limited = (await host.run(`test -e ${group}/memory.max`)).code === 0;
  expect(log.includes(`${Math.floor(max / 2 ** 20)} MiB of memory: 2 workers, with heaps of up to `)).toBe(
    limited,
  );
});

test("let only the service and root use the control socket and the key", async () => {
  const { host } = portico;
  const asNobody = "setpriv --reuid=65534 --regid=65534 --clear-groups";
  const refused = await host.run(`${asNobody} /usr/lib/portico/node /usr/lib/portico/portico.mjs reload`);
  expect(refused.code).toBe(1);
  expect(refused.stderr).toMatch(/\[control\.not-running\]/);
  expect((await reload()).code).toBe(0);
  const [uid] = (await host.must(`stat -c %u /proc/${await portico.show("MainPID")}`)).split("\n");
  expect(
    await host.must("stat -Lc '%a %u' /run/portico-credentials /run/portico-credentials/current/*"),
  ).toBe(`755 0\n400 ${uid}\n400 ${uid}\n`);
  expect((await host.run(`${asNobody} cat /run/portico-credentials/current/privkey.pem`)).code).toBe(1);
  // Not even the service can put anything there.
  const inside = `nsenter --mount --target ${await portico.show("MainPID")} setpriv --reuid=${uid} --clear-groups`;
  expect((await host.run(`${inside} touch /run/portico-credentials/x`)).stderr).toMatch(/Read-only|denied/);
  expect((await host.run(`${inside} cat /etc/portico/tls/privkey.pem`)).stderr).toMatch(/denied/);
});

test("a reload ends when it is done, and fails with the problems when it is refused", async () => {
  const since = await now();
  await portico.writeConfig(portico.config({ workers: 1 }));
  expect((await reload()).code).toBe(0);
  expect(await portico.show("StatusText")).toMatch(/, 1 worker, generation \d+(, 1 older finishing)?$/);
  const good = await portico.processes("master");
  await portico.writeConfig({ ...portico.config(), workers: 0 });
  expect((await reload()).code).toBe(1);
  expect(await portico.show("ActiveState")).toBe("active");
  expect(await portico.show("StatusText")).toMatch(/; last reload refused: workers: .*config\.out-of-range/);
  expect(await said(since)).toMatch(/workers: .*\[config\.out-of-range\]/);
  await portico.writeConfig("{");
  const direct = await portico.host.run("/usr/lib/portico/node /usr/lib/portico/portico.mjs reload");
  expect(direct.code).toBe(1);
  expect(direct.stderr).toMatch(
    /config\.not-json[^]*reload failed: 1 problem; the current config stays in force\n$/,
  );
  expect(await portico.processes("master")).toEqual(good);
  await portico.writeConfig();
  expect((await reload()).code).toBe(0);
});

test("a reload loads renewed TLS files, all or none, and a restart does too", async () => {
  const key = portico.units.tlsFiles[0]!;
  await portico.useCertificate(await issue({ name: "second" }));
  expect((await reload()).code).toBe(0);
  expect(await portico.certificate()).toBe("second");
  // Half of a renewal.
  await portico.host.write(key, (await issue()).key, "0600");
  expect((await reload()).code).toBe(1);
  expect(await portico.show("StatusText")).toMatch(/does not belong to the certificate/);
  expect(await portico.certificate()).toBe("second");
  // What was refused is not what a new worker or an upgrade would find.
  expect((await portico.host.run("/usr/lib/portico/node /usr/lib/portico/portico.mjs upgrade")).stderr).toBe(
    "",
  );
  expect(await portico.certificate()).toBe("second");
  await portico.useCertificate(await issue({ name: "third" }));
  await portico.host.must("systemctl restart portico.service");
  expect(await portico.certificate()).toBe("third");
  expect((await portico.host.run("ls /run/portico-credentials")).code).not.toBe(0);
  // And where systemd starts it again by itself.
  await portico.useCertificate(await issue({ name: "fourth" }));
  expect((await reload()).code).toBe(0);
  await portico.useCertificate(await issue({ name: "fifth" }));
  await portico.host.must(`kill -9 ${await portico.show("MainPID")}`);
  await eventually(async () => (await portico.show("NRestarts")) !== "0", "until it runs again", {
    everyMs: 100,
  });
  await eventually(async () => (await portico.certificate()) === "fifth", "until it serves again", {
    everyMs: 100,
  });
});

test("renewed files are passed on automatically, also if links to them are switched", async () => {
  const { host, units } = portico;
  const directory = "/etc/portico/tls";
  const path = renewalPathUnit([directory, ...units.tlsFiles]);
  await host.write("/etc/systemd/system/portico-certificates.path", renderUnit(path));
  await host.write("/etc/systemd/system/portico-certificates.service", renderUnit(renewalServiceUnit()));
  const names =
    "/etc/systemd/system/portico-certificates.path /etc/systemd/system/portico-certificates.service";
  expect(await host.run(`systemd-analyze verify ${names}`)).toEqual({ code: 0, stdout: "", stderr: "" });
  await host.must("systemctl daemon-reload && systemctl enable --now portico-certificates.path");
  const served = (name: string) =>
    eventually(async () => (await portico.certificate()) === name, `for ${name}`, {
      everyMs: 250,
    });
  await portico.useCertificate(await issue({ name: "written" }));
  await served("written");
  // As certbot does it: a link to the newest version, removed and made again.
  for (const version of ["linked", "switched"]) {
    const { key, cert } = await issue({ name: version });
    await host.write(`/etc/archive/${version}.key`, key, "0600");
    await host.write(`/etc/archive/${version}.pem`, cert);
    await host.must(
      ["key", "pem"]
        .map(
          (type, i) =>
            `rm -f ${units.tlsFiles[i]} && ln -s /etc/archive/${version}.${type} ${units.tlsFiles[i]}`,
        )
        .join(" && "),
    );
    await served(version);
  }
  const since = await now();
  await host.must(
    `cp ${directory}/privkey.pem /root/good.key && openssl genrsa -out /etc/archive/switched.key 2048`,
  );
  await eventually(
    async () => /does not belong to the certificate/.test(await said(since)),
    "for the refusal",
    {
      everyMs: 250,
    },
  );
  expect(await portico.certificate()).toBe("switched");
  await host.must("cat /root/good.key > /etc/archive/switched.key");
  await eventually(async () => !(await portico.show("StatusText")).includes("refused"), "for the good one", {
    everyMs: 250,
  });
  await host.must(
    "systemctl disable --now portico-certificates.path && rm /etc/systemd/system/portico-certificates.*",
  );
  await host.must("rm /etc/portico/tls/*.pem && systemctl daemon-reload");
  await portico.useCertificate(await issue());
});

test("a host recovers by itself once the cause is fixed, however long that took", async () => {
  const since = await now();
  await portico.writeConfig("{");
  await portico.host.must(`kill -9 ${await portico.show("MainPID")}`);
  const before = Number(await portico.show("NRestarts"));
  // More often than systemd would try by default.
  await eventually(
    async () => Number(await portico.show("NRestarts")) > before + 6,
    "until it has tried often",
    { everyMs: 100 },
  );
  expect(await said(since)).toMatch(/config\.not-json/);
  const waiting = (await portico.host.outside()).start(`curl -s http://${portico.host.address}/load/small`);
  let response = "";
  waiting.stdout!.on("data", (chunk) => (response += String(chunk)));
  const responded = once(waiting, "close");
  await portico.writeConfig();
  await responded;
  // The connection waited in the socket all the time.
  expect(response).toBe("small\n");
  await eventually(async () => (await portico.show("ActiveState")) === "active", "until it is active", {
    everyMs: 100,
  });
});

test("a worker that the kernel kills when memory runs out does not end the service", async () => {
  const main = await portico.show("MainPID");
  expect(await portico.show("OOMPolicy")).toBe("continue");
  const [victim] = await portico.processes("worker");
  await portico.host.must(`kill -9 ${victim}`);
  await eventually(async () => (await portico.processes("worker")).length === 2, "until a new worker runs", {
    everyMs: 100,
  });
  expect(await portico.show("MainPID")).toBe(main);
});

test("after a boot it serves", async () => {
  await portico.host.reboot();
  await eventually(
    async () => (await portico.curl("-s http://HOST/load/small")).stdout === "small\n",
    "until it serves",
    { everyMs: 100 },
  );
  expect(await portico.host.must("systemctl is-active portico.service portico.socket")).toBe(
    "active\nactive\n",
  );
});

test("without TLS files there is nothing to hand over, and a reload does not need root", async () => {
  const plain = { ...portico.units, listeners: [{ address: "0.0.0.0", port: 80 }], tlsFiles: [] };
  await portico.host.write("/etc/systemd/system/portico.service", renderUnit(proxyServiceUnit(plain)));
  const { listeners, virtualServers } = portico.config();
  const config = portico.config({
    listeners: [listeners[0]!],
    virtualServers: virtualServers.map((server) => ({ ...server, listeners: [listeners[0]!.name] })),
  });
  await portico.writeConfig(config);
  await portico.host.must("systemctl daemon-reload && systemctl restart portico.service");
  const since = await now();
  expect((await reload()).code).toBe(0);
  expect(await said(since)).toMatch(/configuration reloaded: http:\/\/0\.0\.0\.0:80, 2 workers/);
  expect((await portico.curl("-s http://HOST/load/small")).stdout).toBe("small\n");
  await portico.writeConfig("{");
  expect((await reload()).code).toBe(1);
});
