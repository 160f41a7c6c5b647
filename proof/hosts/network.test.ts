import type { ChildProcess } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Application, type FrontEnd, Host, Mode, StaticNetwork } from "../../src/index.js";
import { synthesizedFiles } from "../../src/testing/index.js";
import { daemonsOf, type FileSyncFrontEndProps, frontEnd, newStack } from "../../testkit/stacks.js";
import { stopCommand as stop } from "./harness/commands.js";
import { bootHost, Namespace, type TestHost } from "./harness/index.js";
import { eventually } from "../../testkit/waiting.js";

/** Firewall, static address and daemons' units on a real host, seen from the network outside. */
let host: TestHost;
let outside: Namespace;

beforeAll(async () => {
  host = await bootHost({ name: "network" });
  outside = await host.outside();
}, 600_000);

afterAll(() => host?.stop());

/** The front end as it is deployed there, with what is tested here. */
function deployed(more: Partial<FileSyncFrontEndProps>): FrontEnd {
  const { address, address6: ipv6Address } = host;
  return frontEnd({ host: { address, ipv6Address }, mode: Mode.tls(), ...more });
}

/** Puts the files of a part of a stack onto the host. */
async function put(part: Parameters<typeof synthesizedFiles>[0]): Promise<void> {
  for (const { path, content, mode } of synthesizedFiles(part)) await host.write(path, content!, mode);
}

/** Sends 200 lines in ten seconds to whoever connects to port 7000. */
const SLOW_SERVER = `require("net").createServer((socket) => {
  let line = 0;
  const timer = setInterval(() => ++line <= 200 ? socket.write(line + "\\n") : (clearInterval(timer), socket.end()), 50);
  socket.on("error", () => clearInterval(timer));
}).listen(7000)`;

/** systemd's own opinion of a unit; empty if it has none. */
const verify = (unit: string): Promise<string> => host.must(`systemd-analyze verify --man=no ${unit} 2>&1`);

describe("firewall", () => {
  const OTHERS = [3306, 8000, 8080, 8082, 9100, 9200, 40_000];

  /** Ports that nmap finds open, of all that a process of the host listens on. */
  async function open(address: string): Promise<number[]> {
    const six = address.includes(":") ? "-6 " : "";
    const listening = (
      await host.must("ss -Hltn | awk '{ sub(/.*:/, \"\", $4); print $4 }' | sort -nu | paste -sd,")
    ).trim();
    const report = await outside.must(`nmap ${six}-n -Pn -p ${listening} --max-retries 10 -oG - ${address}`, {
      timeoutSeconds: 180,
    });
    return [...report.matchAll(/(\d+)\/open\/tcp/g)].map(([, port]) => Number(port)).sort((a, b) => a - b);
  }

  /** What a connection from outside brings back; empty if there is none. */
  const echo = async (address: string, port: number): Promise<string> => {
    const from = `exec 3<>/dev/tcp/${address}/${port} && echo hello >&3 && timeout 5 head -n 1 <&3`;
    return (await outside.run(`timeout 6 bash -c '${from}'`)).stdout.trim();
  };

  const allow = [{ port: 9100, from: ["203.0.113.1"] }];
  let session: ChildProcess;
  let heard = "";
  const say = async (word: string): Promise<void> => {
    session.stdin!.write(`${word}\n`);
    await eventually(async () => heard.includes(`${word}\n`), `until the session responds with ${word}`, {
      everyMs: 100,
    });
  };

  beforeAll(async () => {
    // Echo servers on everything, so that what stays closed is closed by the filter.
    const ports = [80, 443, ...OTHERS].map((port) => `-l ${port}`).join(" ");
    await host.must(`systemd-run --unit=echo systemd-socket-activate --accept --inetd ${ports} /bin/cat`);
    await host.must(`nft -f - <<'END'
table inet guard {
  chain input { type filter hook input priority -1; policy accept; tcp dport 40000 drop; }
}
table ip nat {
  chain prerouting { type nat hook prerouting priority dstnat; policy accept; tcp dport 1 redirect to :2; }
}
END`);
    const ssh = `ssh -i ${host.sshKey} -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR`;
    session = outside.start(`${ssh} root@${host.address} cat`);
    session.stdout!.on("data", (data) => (heard += data));
    await say("before");
  }, 60_000);

  afterAll(() => session !== undefined && stop(session));

  const others = (): Promise<string> => host.must("nft list table inet guard; nft list table ip nat");

  test("opens the ports of the front end and the SSH server over IPv4 and IPv6, and nothing else", async () => {
    expect(await open(host.address)).toEqual([22, 80, 443, ...OTHERS.slice(0, -1)]);
    const before = await others();
    const files = deployed({ firewall: { allowed: allow } });
    await put(files.firewall!);
    expect(await verify("portico-firewall.service")).toBe("");
    // A transfer that the host began itself must go on as well.
    const server = outside.start(`${process.execPath} -e '${SLOW_SERVER}'`);
    await eventually(
      async () => (await outside.run("ss -Hltn sport = 7000")).stdout !== "",
      "until it listens",
      { everyMs: 100 },
    );
    const download = host.start("timeout 60 cat < /dev/tcp/203.0.113.1/7000 > /root/download");
    await eventually(async () => (await host.run("test -s /root/download")).code === 0, "until it flows", {
      everyMs: 100,
    });
    await host.must("systemctl enable --now portico-firewall.service");
    expect(await open(host.address)).toEqual([22, 80, 443, 9100]);
    expect(await open(host.address6)).toEqual([22, 80, 443]);
    await say("after");
    await eventually(async () => download.exitCode !== null, "until the download ends", {
      everyMs: 100,
    });
    expect(await host.must("tail -n 1 /root/download")).toBe("200\n");
    stop(server);
    expect(await others()).toBe(before);
  }, 600_000);

  test("leaves the host's own access to its daemons open", async () => {
    const from = "exec 3<>/dev/tcp/$0/$1 && echo hello >&3 && head -n 1 <&3";
    for (const address of ["127.0.0.1", "::1", host.address]) {
      for (const port of [3306, 8000, 8080, 8082]) {
        expect(await host.must(`timeout 20 bash -c '${from}' ${address} ${port}`)).toBe("hello\n");
      }
    }
    expect(await host.must("nft list table inet portico")).toMatch(/counter packets [1-9]\d* bytes \d+ drop/);
  });

  test("lets through what IP needs: echo and neighbours", async () => {
    await host.must("ip -6 neighbour flush all; ip neighbour flush all");
    await outside.must("ip -6 neighbour flush all; ip neighbour flush all");
    for (const address of [host.address, host.address6]) {
      expect(await outside.must(`ping -n -c 1 -W 2 ${address}`)).toContain(" 0% packet loss");
      expect(await echo(address, 443)).toBe("hello");
    }
  });

  test("learns of a link with a smaller MTU on the path", async () => {
    const [router, far] = [await Namespace.create(), await Namespace.create()];
    try {
      const gateways = ["198.51.100.2", "2001:db8:100::2"];
      await router.connect(
        outside,
        {
          name: "wan",
          addresses: ["198.51.100.2/24", "2001:db8:100::2/64"],
          gateways: ["198.51.100.1", "2001:db8:100::1"],
        },
        { name: "narrow", addresses: ["198.51.100.1/24", "2001:db8:100::1/64"] },
      );
      await far.connect(
        router,
        {
          name: "wan",
          addresses: ["192.0.2.2/24", "2001:db8:200::2/64"],
          gateways: ["192.0.2.1", "2001:db8:200::1"],
        },
        { name: "lan", addresses: ["192.0.2.1/24", "2001:db8:200::1/64"] },
      );
      const forward = "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1";
      await router.must(`${forward}; ip link set wan mtu 1280`);
      await outside.must(
        `${forward}; ip link set narrow mtu 1280; ip route add 192.0.2.0/24 via ${gateways[0]}; ip route add 2001:db8:200::/64 via ${gateways[1]}`,
      );
      // What the host sends back is larger than the link takes, and only ICMP tells it so.
      for (const [address, from] of [
        [host.address, "192.0.2.2"],
        [host.address6, "2001:db8:200::2"],
      ] as const) {
        const talk = `exec 3<>/dev/tcp/${address}/443; head -c 200000 /dev/zero >&3 & head -c 200000 <&3 | wc -c`;
        expect((await far.run(`timeout 30 bash -c '${talk}'`)).stdout.trim()).toBe("200000");
        expect(await host.must(`ip route get ${from}`)).toContain("mtu 1280");
      }
    } finally {
      far.remove();
      router.remove();
    }
  });

  test("reveals nothing about UDP", async () => {
    const scan = `nmap -n -Pn -sU -p 53,67,123,5353,5355,40001 --max-retries 3 -oG - ${host.address}`;
    const report = await outside.must(scan);
    expect(report).not.toContain("/closed/");
    await host.must("systemctl stop portico-firewall");
    expect(await outside.must(scan)).toContain("/closed/");
    await host.must("systemctl start portico-firewall");
  });

  test("is replaced at once, connections staying; what nft refuses changes nothing", async () => {
    const { ruleSet } = deployed({ firewall: {} }).firewall!;
    const table = (): Promise<string> => host.must("nft --stateless list table inet portico");
    const before = await table();
    await host.write(ruleSet.path, "table inet portico\ndelete table inet portico\nnonsense\n");
    expect((await host.run("systemctl reload portico-firewall")).code).not.toBe(0);
    expect(await table()).toBe(before);
    await put(deployed({ firewall: {} }).firewall!);
    await host.must("systemctl reload portico-firewall");
    expect(await table()).not.toContain("9100");
    await say("reloaded");
    expect([await echo(host.address, 9100), await echo(host.address, 443)]).toEqual(["", "hello"]);
  });

  test("is loaded again after the distribution's own rules, which flush everything", async () => {
    for (const verbs of ["start", "restart", "reload", "stop start"]) {
      for (const verb of verbs.split(" ")) await host.must(`systemctl ${verb} nftables`);
      await eventually(
        async () => (await host.must("systemctl list-jobs")).includes("No jobs"),
        "until no job is left",
        { everyMs: 100 },
      );
      expect([verbs, await echo(host.address, 8000), await echo(host.address, 80)]).toEqual([
        verbs,
        "",
        "hello",
      ]);
    }
    await host.must("systemctl stop nftables");
    expect(await host.must("nft list tables; systemctl is-active portico-firewall || true")).toBe(
      "inactive\n",
    );
  });

  test("is removed without a trace, and without touching other tables", async () => {
    await host.must("systemctl start portico-firewall; nft add table inet guard");
    await host.must("systemctl stop portico-firewall");
    expect(await host.must("nft list tables")).toBe("table inet guard\n");
    expect(await echo(host.address, 8000)).toBe("hello");
    // Somebody else removed it first.
    await host.must("systemctl start portico-firewall; nft flush ruleset; systemctl stop portico-firewall");
    expect(await host.must("systemctl is-failed portico-firewall || true")).toBe("inactive\n");
    await say("still here");
  });
});

describe("static address", () => {
  const network = (more: object = {}, ipv6Address = "2001:db8:113::20"): StaticNetwork => {
    const stack = newStack();
    const made = new Host(stack, "host", {
      address: "203.0.113.20",
      netmask: "255.255.255.0",
      gateway: "203.0.113.1",
      dnsDomain: "example.org",
      nameservers: ["203.0.113.53", "2001:db8:113::53"],
      ipv6Address,
    });
    return new StaticNetwork(stack, "network", { host: made, interface: { name: "eth0" }, ...more });
  };
  const reached = async (...addresses: string[]): Promise<boolean> => {
    const pings = addresses.map((address) => outside.run(`ping -n -c 1 -W 1 ${address}`));
    return (await Promise.all(pings)).every(({ code }) => code === 0);
  };
  const ANNOUNCEMENT =
    "interface lan { AdvSendAdvert on; MinRtrAdvInterval 3; MaxRtrAdvInterval 4; prefix 2001:db8:113::/64 {}; };\n";
  const NEW = ["203.0.113.20", "2001:db8:113::20"];

  test("stays in its file until networkd reloads, which then has no complaint", async () => {
    await put(network({ ipv6Gateway: "2001:db8:113::1", resolverFile: true }));
    expect(await reached(host.address, host.address6)).toBe(true);
    expect(await reached(NEW[0]!)).toBe(false);
    await host.must("networkctl reload");
    await eventually(() => reached(...NEW), "until the new addresses respond", { everyMs: 100 });
    const status = await host.must("networkctl status eth0");
    expect(status).toMatch(/Network File: .*05-portico\.network/);
    expect(status).toMatch(/DNS: 203\.0\.113\.53\s+2001:db8:113::53\s+Search Domains: example\.org/);
    expect(await host.must("ip route show default; ip -6 route show default")).toMatch(
      /^default via 203\.0\.113\.1 dev eth0 proto static.*\ndefault via 2001:db8:113::1 dev eth0 proto static/,
    );
    expect(await host.must("cat /etc/resolv.conf")).toBe(
      "search example.org\nnameserver 203.0.113.53\nnameserver 2001:db8:113::53\n",
    );
    expect(await host.must("cat /proc/sys/net/ipv6/conf/eth0/use_tempaddr")).toMatch(/^[0-]/);
    // networkd names what it does not understand.
    expect(
      await host.must("journalctl -u systemd-networkd -b | grep 05-portico | grep -v Reconfiguring || true"),
    ).toBe("");
  });

  test("finds its interface by hardware address", async () => {
    const macAddress = (await host.must("cat /sys/class/net/eth0/address")).trim();
    await put(network({ interface: { macAddress }, ipv6Gateway: "2001:db8:113::1" }));
    await host.must("networkctl reload");
    await eventually(() => reached(...NEW), "until the addresses respond", { everyMs: 100 });
    expect(await host.must("networkctl status eth0")).toMatch(/Network File: .*05-portico\.network/);
  });

  test("lets a router announce the gateway, and takes no second address from it", async () => {
    // The outside announces itself and a prefix.
    const folder = mkdtempSync(join(tmpdir(), "portico-radvd-"));
    writeFileSync(join(folder, "radvd.conf"), ANNOUNCEMENT);
    const router = outside.start(`radvd --nodaemon --config=${folder}/radvd.conf --pidfile=${folder}/pid`);
    try {
      const macAddress = (await host.must("cat /sys/class/net/eth0/address")).trim();
      await put(network({ interface: { macAddress } }));
      await host.must("networkctl reload");
      await eventually(
        async () => (await host.must("ip -6 route show default")).includes("proto ra"),
        "until the route is there",
        { everyMs: 100 },
      );
      const addresses = await host.must("ip -6 -o address show dev eth0 scope global");
      expect(
        addresses
          .trim()
          .split("\n")
          .map((line) => /inet6 (\S+)/.exec(line)![1]),
      ).toEqual([`${NEW[1]}/64`]);
    } finally {
      stop(router);
      rmSync(folder, { recursive: true });
    }
  });

  afterAll(async () => {
    await host.must("rm -f /etc/systemd/network/05-portico.network; networkctl reload");
    await eventually(() => reached(host.address, host.address6), "until the old addresses respond", {
      everyMs: 100,
    });
  });
});

describe("daemons", () => {
  const environmentFile = "/etc/sync/web.env";
  const daemons = (): FrontEnd =>
    deployed({
      application: Application.fileSync({
        installDirectory: "/srv/sync",
        daemons: {
          databaseUnit: "database.service",
          fileServer: { command: ["/srv/sync/server", "100% of $HOME"], type: "exec", user: "sync" },
          webApplication: {
            command: ["/srv/sync/web.sh", "start"],
            stopCommand: ["/srv/sync/web.sh", "stop"],
            type: "forking",
            pidFile: "/run/sync/web.pid",
            user: "sync",
            workingDirectory: "/srv/sync",
            environment: { GREETING: 'say "50%" of $HOME\\n', LANG: "C.UTF-8" },
            environmentFile,
            writableDirectories: ["/usr/local/sync data"],
          },
        },
      }),
    });
  const UNITS = ["database", "sync-file-server", "sync-web-application", "portico"].map(
    (u) => `${u}.service`,
  );
  const show = async (unit: string, property: string): Promise<string> =>
    (await host.must(`systemctl show --value -p ${property} ${unit}`)).trim();
  const times = (property: string): Promise<number[]> =>
    Promise.all(UNITS.map(async (unit) => Number(await show(unit, property))));
  const pid = (unit: string): Promise<string> => show(unit, "MainPID");

  beforeAll(async () => {
    await host.must(
      "useradd --system sync; install -d -o sync /srv/sync /run/sync '/usr/local/sync data'; echo 'd /run/sync 0755 sync' > /etc/tmpfiles.d/sync.conf",
    );
    // What a start script does: it returns when the daemon runs.
    await host.write(
      "/srv/sync/web.sh",
      '#!/bin/sh\ncase $1 in\n  start) sleep 0.3; sleep infinity & echo $! > /run/sync/web.pid ;;\n  stop) kill "$(cat /run/sync/web.pid)" ;;\nesac\n',
      "0755",
    );
    await host.write(
      "/srv/sync/server",
      '#!/bin/sh\nprintf %s "$1" > /run/sync/argument\nexec sleep infinity\n',
      "0755",
    );
    await host.write(environmentFile, "DB_PASSWORD=it's secret\n", "0600");
    for (const name of ["database", "portico"]) {
      const stand = `[Service]\nType=exec\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n`;
      await host.write(`/etc/systemd/system/${name}.service`, stand);
    }
    await put(daemonsOf(daemons())!);
    await host.must("systemctl daemon-reload");
  });

  test("are units that systemd does not complain about", async () => {
    expect(await verify(UNITS.slice(1, 3).join(" "))).toBe("");
  });

  test("start in the order of service 2.6", async () => {
    // One transaction, as at boot.
    await host.must(`systemctl enable ${UNITS.join(" ")} && systemctl start multi-user.target`);
    const started = await times("ActiveEnterTimestampMonotonic");
    expect([...started].sort((a, b) => a - b)).toEqual(started);
    expect(started.every((time) => time > 0)).toBe(true);
  });

  test("run with exactly the described commands and environment", async () => {
    const server = await pid("sync-file-server.service");
    expect(await host.must("cat /run/sync/argument")).toBe("100% of $HOME");
    expect(await host.must(`ps -o user= -p ${server}`)).toBe("sync\n");
    const web = await pid("sync-web-application.service");
    const environment = (await host.must(`cat /proc/${web}/environ`)).split("\0");
    expect(environment).toEqual(
      expect.arrayContaining(['GREETING=say "50%" of $HOME\\n', "DB_PASSWORD=it's secret", "LANG=C.UTF-8"]),
    );
    expect(await host.must(`readlink /proc/${web}/cwd`)).toBe("/srv/sync\n");
    // Nothing of the secret in what everybody may read.
    expect(await show("sync-web-application.service", "Environment")).not.toContain("secret");
  });

  test("may write to the given directories and not elsewhere", async () => {
    const web = await pid("sync-web-application.service");
    const write = (path: string): Promise<string> =>
      host.must(`nsenter -t ${web} -m sh -c 'touch "${path}/probe" 2>&1 && echo yes || echo no' | tail -n 1`);
    const places = ["/usr/local/sync data", "/srv/sync", "/tmp", "/home", "/usr/lib", "/etc", "/boot"];
    const responses = await Promise.all(places.map(write));
    expect(responses.map((response) => response.trim())).toEqual([
      "yes",
      "yes",
      "yes",
      "yes",
      "no",
      "no",
      "no",
    ]);
  });

  test("are restarted when they die, again and again", async () => {
    for (let round = 0; round < 2; round++) {
      const before = await pid("sync-file-server.service");
      await host.must(`kill -KILL ${before}`);
      await eventually(
        async () => {
          const now = await pid("sync-file-server.service");
          return now !== "0" && now !== before;
        },
        "until it runs again",
        { everyMs: 100 },
      );
    }
    // The web application went on meanwhile.
    expect(await show("sync-web-application.service", "NRestarts")).toBe("0");
  });

  test("stop in the opposite order, start again with the host, and the filter before the network", async () => {
    await host.must("mkdir -p /var/log/journal && journalctl --flush");
    await put(deployed({ firewall: {} }).firewall!);
    await host.must("systemctl daemon-reload; systemctl enable portico-firewall");
    await host.reboot();
    const stopped = await host.must(
      "journalctl -b -1 -o cat | grep '^Stopped' | grep -oE 'portico[.]service|sync-[a-z-]+[.]service|database[.]service'",
    );
    // A daemon that died was stopped before.
    expect(stopped.trim().split("\n").slice(-4)).toEqual([...UNITS].reverse());
    const started = await times("ActiveEnterTimestampMonotonic");
    expect([...started].sort((a, b) => a - b)).toEqual(started);
    const filter = Number(await show("portico-firewall.service", "ActiveEnterTimestampMonotonic"));
    const network = Number(await show("systemd-networkd.service", "ActiveEnterTimestampMonotonic"));
    expect(filter).toBeGreaterThan(0);
    expect(filter).toBeLessThan(network);
    expect(await host.must("nft list table inet portico")).toContain("policy drop");
    expect(await host.must("systemctl --failed --no-legend; systemctl is-system-running")).toBe("running\n");
  });
});
