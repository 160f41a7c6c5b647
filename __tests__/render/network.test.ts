import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type Daemon,
  daemonProblems,
  daemonUnit,
  firewallDropIn,
  FASTCGI_START,
  type FirewallInput,
  firewallProblems,
  firewallUnit,
  type NetworkFileInput,
  networkFileProblems,
  noEffectProblems,
  renderFirewall,
  renderNetworkFile,
  renderResolverFile,
  renderUnit,
  unitProblems,
} from "../../src/render/index.js";
import { testWith } from "../../testkit/testWith.js";
import { sayings } from "../../testkit/sayings.js";
import { expectGolden } from "./golden.js";

const said = sayings("network-files");

const folder = mkdtempSync(join(tmpdir(), "portico-network-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** The lines of one section, or of all that have its name. */
function section(text: string, name: string): string[] {
  return text
    .split(/^(?=\[)/m)
    .filter((part) => part.startsWith(`[${name}]\n`))
    .flatMap((part) => part.trim().split("\n").slice(1));
}

describe("static address", () => {
  const input: NetworkFileInput = {
    interface: { name: "eth0" },
    address: "192.168.1.10",
    netmask: "255.255.255.0",
    gateway: "192.168.1.1",
    dnsDomain: "example.org",
    nameservers: ["192.168.1.1", "2001:db8::53"],
    ipv6: { address: "2001:db8::10", prefixLength: 64 },
  };
  const render = (more: Partial<NetworkFileInput>): string => renderNetworkFile({ ...input, ...more });

  test("is what it was", () => {
    expectGolden("network/eth0.network", renderNetworkFile(input));
    expectGolden("network/resolv.conf", renderResolverFile(input));
    expect(networkFileProblems(input)).toEqual([]);
  });

  test("matches an interface by its hardware address, but no bridge over it", () => {
    const text = render({ interface: { macAddress: "52:54:00:12:34:56" } });
    expect(section(text, "Match")).toEqual(["MACAddress=52:54:00:12:34:56", "Type=ether"]);
  });

  test.each<[string, Partial<NetworkFileInput>, string[]]>([
    ["in the subnet", {}, []],
    ["outside it, as with a single address", { netmask: "255.255.255.255" }, ["192.168.1.1"]],
    ["in a network of two", { netmask: "255.255.255.254", gateway: "192.168.1.11" }, []],
    ["none", { gateway: undefined }, []],
    ["not known yet", { gateway: "${var.gateway}" }, []],
    ["of an address that is not known yet", { address: "${var.address}" }, []],
    [
      "not known yet, of a single address",
      { gateway: "${var.gw}", netmask: "255.255.255.255" },
      ["${var.gw}"],
    ],
    [
      "of IPv6, which a prefix need not cover",
      { ipv6: { address: "2001:db8::10", prefixLength: 128, gateway: "fe80::1" } },
      ["fe80::1"],
    ],
  ])("gateway: %s", (_, more, onLink) => {
    const text = render(more);
    const own = section(text, "Network").filter((line) => line.startsWith("Gateway="));
    const gateway = "gateway" in more ? more.gateway : input.gateway;
    expect(own).toEqual(gateway === undefined || onLink.includes(gateway) ? [] : [`Gateway=${gateway}`]);
    expect(section(text, "Route")).toEqual(onLink.flatMap((g) => [`Gateway=${g}`, "GatewayOnLink=yes"]));
  });

  test("accepts a router's gateway only if no IPv6 gateway is given, and never a second address from it", () => {
    expect(section(render({}), "Network")).toContain("IPv6AcceptRA=yes");
    expect(section(render({}), "IPv6AcceptRA")).toEqual(["UseAutonomousPrefix=no"]);
    const withGateway = render({
      ipv6: { address: "2001:db8::10", prefixLength: 64, gateway: "2001:db8::1" },
    });
    expect(section(withGateway, "Network")).toContain("IPv6AcceptRA=no");
    const ipv4Only = render({ ipv6: undefined });
    expect(ipv4Only).not.toMatch(/AcceptRA|2001:db8::10/);
    expect(section(ipv4Only, "Network")).toContain("IPv6PrivacyExtensions=no");
  });

  test.each<[string, Partial<NetworkFileInput>, string, string]>([
    ["a pattern for a name", { interface: { name: "eth*" } }, "network.bad-interface", "interface.name"],
    ["two names", { interface: { name: "eth0 eth1" } }, "network.bad-interface", "interface.name"],
    ["a negation", { interface: { name: "!eth0" } }, "network.bad-interface", "interface.name"],
    ["a line end", { interface: { name: "e\n[Link]" } }, "network.bad-interface", "interface.name"],
    ["a long name", { interface: { name: "a".repeat(16) } }, "network.bad-interface", "interface.name"],
    [
      "a group address",
      { interface: { macAddress: "01:00:5e:00:00:01" } },
      "network.bad-interface",
      "interface.macAddress",
    ],
    [
      "zeros",
      { interface: { macAddress: "00:00:00:00:00:00" } },
      "network.bad-interface",
      "interface.macAddress",
    ],
    [
      "two",
      { interface: { macAddress: "52:54:00:12:34:56 52:54:00:12:34:57" } },
      "network.bad-interface",
      "interface.macAddress",
    ],
    ["no interface", { interface: {} as never }, "network.bad-interface", "interface"],
    [
      "an interface by name and by address",
      { interface: { name: "eth0", macAddress: "52:54:00:12:34:56" } },
      "network.bad-interface",
      "interface",
    ],
    ["no netmask", { netmask: undefined }, "network.bad-address", "netmask"],
    ["a netmask with a hole", { netmask: "255.0.255.0" }, "network.bad-address", "netmask"],
    ...[129, 1.5].map((prefixLength): [string, Partial<NetworkFileInput>, string, string] => [
      `a prefix length of ${prefixLength}`,
      { ipv6: { address: "2001:db8::10", prefixLength } },
      "network.bad-address",
      "ipv6.prefixLength",
    ]),
    [
      "no prefix length",
      { ipv6: { address: "2001:db8::10", prefixLength: 0 } },
      "network.bad-address",
      "ipv6.prefixLength",
    ],
    [
      "a gateway with a zone",
      { ipv6: { address: "2001:db8::10", prefixLength: 64, gateway: "fe80::1%eth0" } },
      "network.bad-address",
      "ipv6.gateway",
    ],
  ])("%s is refused", (_, more, code, path) => {
    expect(said(networkFileProblems({ ...input, ...more })).map((p) => [p.code, p.path])).toEqual([
      [code, path],
    ]);
  });
});

test.each<[string, Partial<NetworkFileInput>]>([
  ["no IPv6", { ipv6: undefined }],
  ["the shortest prefix", { ipv6: { address: "2001:db8::10", prefixLength: 1 } }],
  ["the longest prefix", { ipv6: { address: "2001:db8::10", prefixLength: 128 } }],
  ["an interface by its hardware address", { interface: { macAddress: "52:54:00:12:34:56" } }],
])("a static address is accepted: %s", (_, more) => {
  const input = { interface: { name: "eth0" }, address: "192.0.2.1", netmask: "255.0.0.0", nameservers: [] };
  expect(networkFileProblems({ ...input, ...more })).toEqual([]);
});

describe("firewall", () => {
  const input: FirewallInput = {
    ports: [22, 80, 443],
    loopbackPorts: [3306, 8000, 8080, 8082],
    allowed: [
      { port: 9100, from: ["192.168.1.0/24", "10.0.0.5", "2001:db8::/32"] },
      { port: 51_820, protocol: "udp" },
    ],
    dhcpClient: true,
  };

  const problems = (rules: FirewallInput) => [...firewallProblems(rules), ...noEffectProblems(rules)];

  test("is what it was", () => {
    expectGolden("network/firewall.nft", renderFirewall(input));
    expectGolden(
      "network/portico-firewall.service",
      renderUnit(firewallUnit("/usr/sbin/nft", "/etc/portico/firewall.nft")),
    );
    expectGolden("network/nftables.service.d.conf", renderUnit(firewallDropIn()));
    expect(firewallProblems(input)).toEqual([]);
    expect(unitProblems(firewallUnit("/usr/sbin/nft", "/etc/portico/firewall.nft"))).toEqual([]);
  });

  testWith("root", "nft").each<[string, Partial<FirewallInput>]>([
    ["as it is", {}],
    ["without further ports", { allowed: [] }],
    ["with a host that shares an address", { vrrpPeers: ["192.0.2.12"] }],
    ["with clients for all ports", { from: ["10.0.0.0/8", "10.1.0.0/16", "2001:db8::/32"] }],
    ["without any port", { ports: [], loopbackPorts: [], allowed: [], dhcpClient: false }],
  ])("nft reads it back, %s", (_, more) => {
    const file = join(folder, "firewall.nft");
    writeFileSync(file, renderFirewall({ ...input, ...more }));
    // The check asks the kernel, so it takes a network of its own.
    const checked = spawnSync("unshare", ["--net", "nft", "--check", "--file", file], { encoding: "utf8" });
    expect([checked.status, checked.stdout, checked.stderr]).toEqual([0, "", ""]);
  });

  test.each<[Partial<FirewallInput>, string, string]>([
    [{ ports: [3306] }, "firewall.loopback-port", "ports[0]"],
    [{ allowed: [{ port: 8082 }] }, "firewall.loopback-port", "allowed[0].port"],
    [{ allowed: [{ port: 8000, from: ["10.0.0.0/8"] }] }, "firewall.loopback-port", "allowed[0].port"],
    [{ allowed: [{ port: 0 }] }, "config.out-of-range", "allowed[0].port"],
    [{ from: ["192.168.1.5/24"] }, "config.bad-address", "from[0]"],
    [
      { allowed: [{ port: 1, from: ["10.0.0.0/8", "2001:db8::1/64"] }] },
      "config.bad-address",
      "allowed[0].from[1]",
    ],
    [{ allowed: [{ port: 1, from: ["lan"] }] }, "config.bad-address", "allowed[0].from[0]"],
    [{ allowed: [{ port: 1, from: ["fe80::1%eth0"] }] }, "config.bad-address", "allowed[0].from[0]"],
    [{ allowed: [{ port: 1, from: ["10.0.0.0/33"] }] }, "config.bad-address", "allowed[0].from[0]"],
    [{ allowed: [{ port: 1, from: [] }] }, "config.missing-field", "allowed[0].from"],
    [{ from: [] }, "config.missing-field", "from"],
    [{ from: ["10.0.0.0/8", "vpn"] }, "config.bad-address", "from[1]"],
    [{ allowed: [{ port: 443, from: ["10.0.0.0/8"] }] }, "firewall.no-effect", "allowed[0]"],
    [{ allowed: [{ port: 80 }] }, "firewall.no-effect", "allowed[0]"],
    [{ allowed: [{ port: 1 }, { port: 1 }] }, "firewall.no-effect", "allowed[0]"],
    [{ allowed: [{ port: 1 }, { port: 1, from: ["10.0.0.0/8"] }] }, "firewall.no-effect", "allowed[1]"],
  ])("%j is refused: %s %s", (more, code, path) => {
    expect(said(problems({ ...input, ...more })).map((p) => [p.code, p.path])).toEqual([[code, path]]);
  });

  test.each<[keyof FirewallInput, (list: string) => string, readonly (number | string)[]]>([
    ["ports", (list) => `tcp dport { ${list} } accept`, [22, 80]],
    ["loopbackPorts", (list) => `tcp dport { ${list} } counter drop`, [3306, 8000]],
    ["vrrpPeers", (list) => `ip saddr { ${list} } ip protocol 112 accept`, ["192.0.2.12", "192.0.2.13"]],
  ])("%s have a rule with all of them if there are any", (name, rule, all) => {
    const none = { ports: [], loopbackPorts: [], allowed: [], dhcpClient: false };
    const text = (...some: readonly unknown[]): string =>
      renderFirewall({ ...none, [name]: some } as FirewallInput);
    expect(text()).not.toMatch(/\{ *\}|tcp dport|ip saddr [^f]|sport/);
    expect(text(all[0])).toContain(rule(String(all[0])));
    expect(text(...all)).toContain(rule(all.join(", ")));
  });

  test("sources of both families are in the same order however they are given", () => {
    const from = (...sources: string[]): string =>
      renderFirewall({ ...input, allowed: [{ port: 9100, from: sources }] });
    expect(from("2001:db8::/32", "10.0.0.5")).toBe(from("10.0.0.5", "2001:db8::/32"));
  });

  test("entries for one port each have an effect, for other clients and for another protocol", () => {
    const allowed: FirewallInput["allowed"] = [
      { port: 1, from: ["10.0.0.0/8"] },
      { port: 1, from: ["192.0.2.1"] },
      { port: 443, protocol: "udp" },
    ];
    expect(problems({ ...input, allowed })).toEqual([]);
  });

  test("a UDP port never belongs to a daemon", () => {
    expect(firewallProblems({ ...input, allowed: [{ port: 8080, protocol: "udp" }] })).toEqual([]);
  });
});

describe("daemons", () => {
  const web: Daemon = {
    command: ["/srv/sync/web.sh", "start"],
    stopCommand: ["/srv/sync/web.sh", "stop"],
    type: "forking",
    user: "sync",
    group: "sync",
    workingDirectory: "/srv/sync",
    environment: { LANG: "C.UTF-8", GREETING: 'say "50%" of $HOME\\n', EMPTY: "" },
    environmentFile: "/etc/sync/web.env",
    pidFile: "/run/sync/web.pid",
    writableDirectories: ["/usr/local/sync data"],
  };
  const unit = (daemon: Daemon) =>
    daemonUnit({
      daemon,
      description: "Web application",
      after: ["mariadb.service", "sync-file-server.service"],
      before: ["portico.service"],
    });

  test("units are what they were", () => {
    expectGolden("network/sync-web-application.service", renderUnit(unit(web)));
    expect([...daemonProblems(web), ...unitProblems(unit(web))]).toEqual([]);
    expect(daemonProblems({ ...web, environment: { A: "b", _: "c" } })).toEqual([]);
  });

  test("a unit between two others, and one that is alone", () => {
    const daemon: Daemon = { command: ["/bin/x"], type: "exec", user: "x", hardening: false };
    const sections = (after: string[], before: string[]): string[] =>
      section(renderUnit(daemonUnit({ daemon, description: "X", after, before })), "Unit");
    expect(sections([], [])).toEqual(["Description=X", "After=network.target"]);
    expect(sections(["a.service"], ["b.service"])).toEqual([
      "Description=X",
      "Wants=a.service",
      "After=network.target a.service",
      "Before=b.service",
    ]);
    expect(daemonProblems({ ...daemon, startTimeoutSeconds: 1, stopTimeoutSeconds: 86_400 })).toEqual([]);
  });

  test("follow every choice", () => {
    const text = renderUnit(
      unit({
        command: ["/bin/x"],
        type: "notify",
        user: "x",
        restart: "always",
        startTimeoutSeconds: 1,
        stopTimeoutSeconds: 2,
        hardening: false,
        directives: { TimeoutStopSec: 3, LimitNOFILE: 9 },
      }),
    );
    // Without a directive that wins over it.
    const plain: Daemon = { command: ["/bin/x"], type: "exec", user: "x" };
    expect(renderUnit(unit({ ...plain, stopTimeoutSeconds: 2 }))).toContain("\nTimeoutStopSec=2\n");
    expect(renderUnit(unit(plain))).toContain("\nTimeoutStopSec=90\n");
    expect(section(text, "Service")).toEqual([
      "Type=notify",
      "User=x",
      "ExecStart=/bin/x",
      "Restart=always",
      "RestartSec=5",
      "TimeoutStartSec=1",
      "TimeoutStopSec=3",
      "LimitNOFILE=9",
    ]);
  });

  test.each<[Partial<Daemon>, string, string]>([
    [{ user: "a b" }, "unit.bad-value", "user"],
    [{ user: "1000" }, "unit.bad-value", "user"],
    [{ group: "%u" }, "unit.bad-value", "group"],
    [{ workingDirectory: "srv" }, "config.bad-file-path", "workingDirectory"],
    [{ workingDirectory: "/srv/.." }, "config.bad-file-path", "workingDirectory"],
    [{ environmentFile: "-/etc/x" }, "config.bad-file-path", "environmentFile"],
    [{ environmentFile: "/etc/*.env" }, "config.bad-file-path", "environmentFile"],
    [{ pidFile: "/run/x\ny" }, "config.bad-file-path", "pidFile"],
    [{ environment: { "A B": "x" } }, "unit.bad-value", "environment.A B"],
    [{ environment: { DB_PASSWORD: "x" } }, "unit.secret-in-environment", "environment.DB_PASSWORD"],
    [{ environment: { SECRET_KEY: "x" } }, "unit.secret-in-environment", "environment.SECRET_KEY"],
    [{ environment: { S3_api_key: "x" } }, "unit.secret-in-environment", "environment.S3_api_key"],
    [{ environment: { MODE: "fastcgi" } }, "unit.fastcgi-start", "environment.MODE"],
    [{ startTimeoutSeconds: 0 }, "config.out-of-range", "startTimeoutSeconds"],
    [{ stopTimeoutSeconds: Infinity }, "config.out-of-range", "stopTimeoutSeconds"],
    [{ stopTimeoutSeconds: 1.5 }, "config.out-of-range", "stopTimeoutSeconds"],
    [{ startTimeoutSeconds: 86_401 }, "config.out-of-range", "startTimeoutSeconds"],
    [{ environment: { A: true as never } }, "unit.bad-value", "environment.A"],
    [{ environment: { "A-": "x" } }, "unit.bad-value", "environment.A-"],
    [{ environment: { "1A": "x" } }, "unit.bad-value", "environment.1A"],
  ])("%j is refused: %s %s", (more, code, path) => {
    const problems = said(daemonProblems({ ...web, ...more }));
    expect(problems.map((p) => [p.code, p.path])).toEqual([[code, path]]);
    expect(JSON.stringify(problems)).not.toContain('"received":"x"');
  });

  test("problems of the unit itself are found: control characters, commands", () => {
    const bad = { ...web, environment: { A: "1\nExecStartPre=/bin/x" } };
    expect(unitProblems(unit(bad)).map((p) => [p.code, p.path])).toEqual([
      ["unit.bad-value", "Service.Environment[0]"],
    ]);
    expect(unitProblems(unit({ ...web, command: ["web.sh", "start"] })).map((p) => p.code)).toEqual([
      "unit.bad-value",
    ]);
  });

  describe("FastCGI variant", () => {
    const refused = (command: string[]): string[] =>
      unitProblems(unit({ ...web, command })).map((p) => p.code);
    const script = "/srv/sync/web.sh";
    const variants: string[][] = [
      [script, "start-fastcgi"],
      [script, "START-FASTCGI"],
      [script, "fastcgi"],
      ["/srv/sync/manage.py", "runfcgi", "method=threaded"],
      [script, "--mode=fastcgi"],
      ["/bin/sh", "-c", `cd /srv && exec ${script} start-fastcgi`],
      ["/bin/sh", "-c", `${script} 'start-fastcgi'`],
      ["/bin/bash", "-c", `${script} fastcgi; true`],
      ["/usr/bin/env", "sh", "-c", `sh -c "${script} fastcgi"`],
    ];
    const others: string[][] = [
      [script, "start"],
      [script, "start-fast"],
      ["/srv/fastcgi/web.sh", "start"],
      ["/bin/sh", "-c", "/usr/lib/fcgi-tools/web.sh start"],
      [script, "start", "fastcgi.log"],
    ];
    test.each(variants.map((command) => [command]))("%j is refused", (command) => {
      expect(refused(command)).toEqual(["unit.fastcgi-start"]);
    });
    test.each(others.map((command) => [command]))("%j is not", (command) => {
      expect(refused(command)).toEqual([]);
    });

    testWith("terraform")("Terraform judges as this check does", () => {
      const words = [...variants, ...others].flat();
      const judged = words.map(
        (word) => `can(regex(${JSON.stringify(`(?i)${FASTCGI_START}`)}, ${JSON.stringify(word)}))`,
      );
      const judgement = execFileSync("terraform", ["console"], {
        cwd: folder,
        input: `jsonencode(jsonencode([${judged.join(", ")}]))\n`,
        encoding: "utf8",
        stdio: ["pipe", "pipe", "ignore"],
      });
      const here = words.map(
        (word) => unitProblems({ Service: { ExecStart: { command: ["/bin/x", word] } } }).length > 0,
      );
      expect(JSON.parse(JSON.parse(JSON.parse(judgement) as string) as string)).toEqual(here);
    });
  });

  testWith("systemd-analyze")("systemd verifies all units without a complaint", () => {
    const here = { ...web, command: ["/bin/true", "start"], stopCommand: ["/bin/true"] };
    const files = Object.entries({
      "sync-web-application.service": unit(here),
      "portico-firewall.service": firewallUnit("/usr/sbin/nft", "/etc/portico/firewall.nft"),
    }).map(([name, document]) => {
      writeFileSync(join(folder, name), renderUnit(document));
      return join(folder, name);
    });
    const verified = spawnSync("systemd-analyze", ["verify", "--man=no", ...files], { encoding: "utf8" });
    // Units of this machine may have faults of their own.
    const ours = verified.stderr.split("\n").filter((line) => /portico|sync-/.test(line));
    expect([verified.status, ours]).toEqual([0, []]);
  });
});
