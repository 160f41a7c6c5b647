import { Fn, TerraformVariable, Testing } from "cdktf";
import {
  Application,
  ApplicationDaemons,
  ApplicationSettings,
  type Daemon,
  Firewall,
  type FrontEndFirewallProps,
  Host,
  HostFile,
  type HostProps,
  Mode,
  StaticNetwork,
  type StaticNetworkProps,
  SystemdUnit,
} from "../../src/index.js";
import { renderRoutes, synthesizedFile, synthesizedFiles } from "../../src/testing/index.js";
import { sayings } from "../../testkit/sayings.js";
import {
  daemonsOf,
  frontEnd,
  newStack,
  problemsOf as refused,
  resolved,
  synthesize,
} from "../../testkit/stacks.js";

const said = sayings("network");
const problemsOf = (make: () => unknown) => said(refused(make));

const LAN: HostProps = {
  address: "192.168.1.10",
  netmask: "255.255.255.0",
  gateway: "192.168.1.1",
  dnsDomain: "example.org",
  nameservers: ["192.168.1.1"],
};

const daemon: Daemon = { command: ["/srv/sync/server"], type: "exec", user: "sync" };

describe("ports", () => {
  const ports = (more: Parameters<typeof frontEnd>[0]) => {
    const { exposedPorts, loopbackPorts } = frontEnd(more);
    return { exposedPorts, loopbackPorts };
  };

  test("are those of service 1.7", () => {
    const loopbackPorts = [3306, 8000, 8080, 8082];
    expect(ports({})).toEqual({ exposedPorts: [22, 80, 443], loopbackPorts });
    expect(ports({ mode: Mode.plain() })).toEqual({ exposedPorts: [22, 80], loopbackPorts });
    const host = { address: "192.0.2.10", ipv6Address: "2001:db8::10", sshPort: false as const };
    expect(ports({ host })).toEqual({ exposedPorts: [80, 443], loopbackPorts });
  });

  test("follow listeners, SSH server and upstreams", () => {
    const files = frontEnd({
      host: { address: "192.0.2.10", sshPort: 2222 },
      mode: Mode.tls({ httpPort: 8090, httpsPort: 8443 }),
      upstreams: { web: { url: "http://10.0.0.5:9000" }, webdav: { url: "http://[::1]:9090" } },
    });
    expect(files.exposedPorts).toEqual([2222, 8090, 8443]);
    expect(files.loopbackPorts).toEqual([3306, 8082, 9090]);
    files.proxy.addListener("status", { address: "127.0.0.1", port: 9999 });
    files.proxy.addListener("more", { port: 8444 });
    files.proxy.addUpstream("app", { url: "http://localhost" });
    expect(files.exposedPorts).toEqual([2222, 8090, 8443, 8444]);
    expect(files.loopbackPorts).toEqual([80, 3306, 8082, 9090]);
  });

  test("are Terraform outputs, as are DNS records and port forwards", () => {
    const stack = newStack();
    const host = { ...LAN, ipv6Address: "2a00:1450::10", publicName: "files.example.org" };
    const files = frontEnd({ outputs: true, host }, "files", stack);
    files.proxy.addListener("more", { port: 8444 });
    const forward = (port: number) => ({ protocol: "tcp", port, toAddress: "192.168.1.10", toPort: port });
    // Sorted by name: DnsRecords, ExposedPorts, LoopbackPorts, PortForwards, Url.
    const output = JSON.parse(Testing.synth(stack)).output as Record<string, { value: unknown }>;
    expect(Object.values(output).map(({ value }) => value)).toEqual([
      [{ name: "files.example.org", type: "AAAA", value: "2a00:1450::10" }],
      [22, 80, 443, 8444],
      [3306, 8000, 8080, 8082],
      [forward(80), forward(443)],
      "https://files.example.org/sync/",
    ]);
  });

  test("of an SSH server are checked", () => {
    const problems = problemsOf(() => new Host(newStack(), "host", { ...LAN, sshPort: 0 }));
    expect(problems.map((p) => [p.code, p.path])).toEqual([["config.out-of-range", "stack/host.sshPort"]]);
  });
});

describe("static network", () => {
  const network = (props: Partial<StaticNetworkProps> = {}, host: Partial<HostProps> = {}) => {
    const stack = newStack();
    return new StaticNetwork(stack, "network", {
      interface: { name: "eth0" },
      ...props,
      host: new Host(stack, "host", { ...LAN, ...host }),
    });
  };
  const text = (made: StaticNetwork) => synthesizedFile(made, made.networkFile.path).content;

  test("is written from the host's fields, and takes effect at the next boot", () => {
    const made = network({ resolverFile: true }, { ipv6Address: "2001:0db8::0010" });
    expect(text(made)).toMatch(
      /Name=eth0\n[^]*Address=192\.168\.1\.10\/24\nGateway=192\.168\.1\.1\nAddress=2001:db8::10\/64\n/,
    );
    expect(made.networkFile).toMatchObject({
      path: "/etc/systemd/network/05-portico.network",
      mode: "0644",
      role: "other",
    });
    expect(made.resolverFile).toMatchObject({ path: "/etc/resolv.conf", role: "other" });
    expect(network().resolverFile).toBeUndefined();
  });

  test("takes effect at once only on request", () => {
    expect(network({ apply: true }).networkFile.role).toBe("network");
  });

  test("may have an address and a gateway that are known only at apply", () => {
    const stack = newStack();
    const [address, gateway] = ["address", "gateway"].map(
      (name) => new TerraformVariable(stack, name, { type: "string" }).stringValue,
    );
    const host = new Host(stack, "host", { ...LAN, address: address!, gateway });
    const made = new StaticNetwork(stack, "network", { host, interface: { name: "eth0" } });
    expect(synthesizedFile(made, made.networkFile.path).placeholder).toContain(
      "Address=${var.address}/24\nGateway=${var.gateway}\n",
    );
  });

  test.each<[string, Partial<StaticNetworkProps>, Partial<HostProps>, string, string]>([
    ["without netmask", {}, { netmask: undefined }, "network.bad-address", "host.netmask"],
    ["for a pattern", { interface: { name: "e*" } }, {}, "network.bad-interface", "network.interface.name"],
    [
      "with a bad prefix length",
      { ipv6PrefixLength: 129 },
      { ipv6Address: "2001:db8::10" },
      "network.bad-address",
      "network.ipv6PrefixLength",
    ],
  ])("%s is refused", (_, props, host, code, path) => {
    const problems = problemsOf(() => network(props, host));
    expect(problems.map((p) => [p.code, p.path])).toEqual([[code, `stack/${path}`]]);
  });

  test("has a file that systemd-networkd reads", () => {
    for (const name of ["a.network", "10-b_c@d.e.network"]) expect(() => network({ name })).not.toThrow();
    for (const name of [
      "",
      ".network",
      "a",
      "a.networks",
      "a.network\n",
      "a b.network",
      "a/b.network",
      "a.netdev",
    ])
      expect([name, problemsOf(() => network({ name })).map((p) => p.path)]).toEqual([
        name,
        ["stack/network.name"],
      ]);
  });

  test("has a gateway in its subnet, as the host finds out", () => {
    const checked = (more: Partial<HostProps>): unknown[] => {
      const stack = newStack();
      const text = new TerraformVariable(stack, "t", { type: "string" }).stringValue;
      const host = new Host(stack, "host", { ...LAN, address: text, ...more });
      const { networkFile } = new StaticNetwork(stack, "network", { interface: { name: "eth0" }, host });
      const late = resolved(stack, networkFile.lateValues);
      return late
        .filter(({ message }) => message === "is outside the host's subnet")
        .map(({ path, code, value, rule }) => [path, code, value, rule.network]);
    };
    const gateway = ["stack/host.gateway", "host.bad-network", "192.168.1.1"];
    expect(checked({})).toEqual([[...gateway, "${var.t}/24"]]);
    expect(checked({ netmask: "255.255.255.254" })).toEqual([[...gateway, "${var.t}/31"]]);
    expect(checked({ netmask: "255.255.255.255" })).toEqual([]);
    expect(checked({ gateway: undefined })).toEqual([]);
    expect(checked({ address: LAN.address })).toEqual([]);
  });

  test("needs a netmask that is known at synthesis", () => {
    const variable = new TerraformVariable(newStack(), "netmask", { type: "string" }).stringValue;
    for (const netmask of [variable, Fn.cidrnetmask("10.0.0.0/8")])
      expect(problemsOf(() => network({}, { netmask }))).toMatchObject([
        {
          path: "stack/host.netmask",
          message: "is not known at synthesis",
          fix: expect.stringMatching(/^Use a literal/),
        },
      ]);
  });
});

describe("firewall", () => {
  const rules = (made: Firewall) => synthesizedFile(made, made.ruleSet.path).content!;

  test("of the front end follows its ports, those added later too", () => {
    const files = frontEnd({ firewall: { allowed: [{ port: 9100, from: ["192.168.1.0/24"] }] } });
    files.proxy.addListener("more", { port: 8444 });
    expect(rules(files.firewall!)).toContain("tcp dport { 22, 80, 443, 8444 } accept\n");
    expect(rules(files.firewall!)).toContain("tcp dport { 3306, 8000, 8080, 8082 } counter drop");
    expect(rules(files.firewall!)).toContain("ip saddr { 192.168.1.0/24 } tcp dport 9100 accept\n");
    expect(files.firewall!.ruleSet).toMatchObject({ path: "/etc/portico/firewall.nft", role: "firewall" });
    expect(files.firewall!.unit.path).toBe("/etc/systemd/system/portico-firewall.service");
  });

  const everyPort = { host: LAN, mode: Mode.tls() };
  const opened = (firewall: FrontEndFirewallProps): string[] =>
    rules(frontEnd({ ...everyPort, firewall }).firewall!)
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => /(^| )(tcp|udp) dport .* accept$/.test(line) && !line.includes("sport"));

  test.each<[string, FrontEndFirewallProps, string[]]>([
    [
      "an entry for a listener's port narrows the port",
      { allowed: [{ port: 443, from: ["10.0.0.0/8"] }] },
      ["tcp dport { 22, 80 } accept", "ip saddr { 10.0.0.0/8 } tcp dport 443 accept"],
    ],
    [
      "an entry for the SSH server's port as well",
      { allowed: [{ port: 22, from: ["10.0.0.0/8", "2001:db8::1"] }] },
      [
        "tcp dport { 80, 443 } accept",
        "ip saddr { 10.0.0.0/8 } tcp dport 22 accept",
        "ip6 saddr { 2001:db8::1 } tcp dport 22 accept",
      ],
    ],
    [
      "clients for all listeners leave the SSH server open",
      { from: ["10.0.0.0/8"] },
      ["ip saddr { 10.0.0.0/8 } tcp dport { 80, 443 } accept", "tcp dport 22 accept"],
    ],
    [
      "an entry opens one port of them to everyone",
      { from: ["10.0.0.0/8"], allowed: [{ port: 80 }, { port: 22, from: ["10.9.0.0/16"] }] },
      [
        "ip saddr { 10.0.0.0/8 } tcp dport { 443 } accept",
        "tcp dport 80 accept",
        "ip saddr { 10.9.0.0/16 } tcp dport 22 accept",
      ],
    ],
    [
      "UDP narrows nothing",
      { allowed: [{ port: 443, protocol: "udp", from: ["10.0.0.0/8"] }] },
      ["tcp dport { 22, 80, 443 } accept", "ip saddr { 10.0.0.0/8 } udp dport 443 accept"],
    ],
  ])("%s", (_, firewall, expected) => expect(opened(firewall)).toEqual(expected));

  test("an entry that changes nothing is refused", () => {
    const stack = newStack();
    frontEnd({ ...everyPort, firewall: { allowed: [{ port: 443 }] } }, "files", stack);
    expect(() => synthesize(stack)).toThrow(
      /stack\/files\/Firewall\.allowed\[0\]: .*\[firewall\.no-effect\]/,
    );
  });

  test("the table of routes shows who may reach a port", () => {
    const from = ["10.0.0.0/8"];
    const who = (firewall: FrontEndFirewallProps): string =>
      renderRoutes(frontEnd({ ...everyPort, firewall })).match(/^https .*$/m)![0];
    expect(who({ from })).toContain("10.0.0.0/8 (firewall)");
    expect(who({ allowed: [{ port: 443, from }] })).toContain("10.0.0.0/8 (firewall)");
    expect(who({ from, allowed: [{ port: 443 }] })).toContain("everyone");
  });

  test("lets in responses to a DHCP client unless the address is static", () => {
    const network = { interface: { name: "eth0" } };
    const dhcp = (more: Parameters<typeof frontEnd>[0]) =>
      rules(frontEnd({ firewall: {}, host: LAN, ...more }).firewall!).includes("dport 68");
    expect([dhcp({}), dhcp({ network }), dhcp({ network, firewall: { dhcpClient: true } })]).toEqual([
      true,
      false,
      true,
    ]);
  });

  test("refuses to open a daemon's port, at once or when the app is synthesized", () => {
    const stack = newStack();
    const host = new Host(stack, "host", LAN);
    const props = { host, ports: [22, 80], loopbackPorts: [8082], allowed: [{ port: 8082 }] };
    expect(problemsOf(() => new Firewall(stack, "firewall", props)).map((p) => [p.code, p.path])).toEqual([
      ["firewall.loopback-port", "stack/firewall.allowed[0].port"],
    ]);
    const late = newStack();
    frontEnd({ firewall: { allowed: [{ port: 8000 }] } }, "files", late);
    expect(() => synthesize(late)).toThrow("stack/files/Firewall.allowed[0].port");
  });

  test.each(["ports", "loopbackPorts"])(
    "is checked when the app is synthesized if %s are given then",
    (name) => {
      const stack = newStack();
      const host = new Host(stack, "host", LAN);
      const props = { host, ports: [22], loopbackPorts: [8082], allowed: [{ port: 23 }] };
      const given: number[] = [...props[name as "ports" | "loopbackPorts"]];
      new Firewall(stack, "firewall", { ...props, [name]: () => given });
      given.push(0);
      expect(() => synthesize(stack)).toThrow(`stack/firewall.${name}[1]`);
    },
  );

  test("has what is known only at apply checked then", () => {
    const stack = newStack();
    const port = new TerraformVariable(stack, "port", { type: "number" }).numberValue;
    const text = new TerraformVariable(stack, "text", { type: "string" }).stringValue;
    const { ruleSet } = new Firewall(stack, "firewall", {
      host: new Host(stack, "host", LAN),
      ports: [22, port],
      loopbackPorts: [3306, port],
      allowed: [{ port: 23 }, { port, from: ["10.0.0.0/8", text] }, { port, protocol: "udp" }],
      vrrpPeers: ["192.168.1.11", text],
    });
    const late = resolved(stack, ruleSet.lateValues);
    expect(late.map(({ path, message, code }) => `${path}: ${message} [${code}]`)).toEqual([
      "stack/firewall.ports[0]: must be reachable on loopback only [firewall.loopback-port]",
      "stack/firewall.ports[1]: is out of range [config.out-of-range]",
      "stack/firewall.ports[1]: must be reachable on loopback only [firewall.loopback-port]",
      "stack/firewall.loopbackPorts[1]: is out of range [config.out-of-range]",
      "stack/firewall.vrrpPeers[1]: is not the IPv4 address of the other host [config.bad-address]",
      "stack/firewall.allowed[0].port: must be reachable on loopback only [firewall.loopback-port]",
      "stack/firewall.allowed[1].port: is out of range [config.out-of-range]",
      "stack/firewall.allowed[1].port: must be reachable on loopback only [firewall.loopback-port]",
      "stack/firewall.allowed[1].from[1]: is not an IP address or a CIDR range such as 10.0.0.0/8 [config.bad-address]",
      "stack/firewall.allowed[2].port: is out of range [config.out-of-range]",
    ]);
    expect(late[0]).toMatchObject({ value: 22, rule: { noneOf: [3306, "${var.port}"] } });
  });
});

describe("daemons", () => {
  const units = (daemons: Parameters<typeof frontEnd>[0]) => {
    const made = daemonsOf(frontEnd(daemons))!;
    return Object.fromEntries(
      synthesizedFiles(made).map(({ path, content }) => [
        path.split("/").at(-1),
        (/^After=(.*)$/m.exec(content!)?.[1] ?? "") + " | " + /^Before=(.*)$/m.exec(content!)?.[1],
      ]),
    );
  };

  test("start in the order of service 2.6", () => {
    expect(
      units({
        application: Application.fileSync({
          installDirectory: "/srv/sync",
          daemons: { fileServer: daemon, webApplication: daemon, webdav: daemon },
        }),
      }),
    ).toEqual({
      "sync-file-server.service": "network.target mariadb.service | portico.service",
      "sync-web-application.service":
        "network.target mariadb.service sync-file-server.service | portico.service",
      "sync-webdav.service": "network.target mariadb.service sync-file-server.service | portico.service",
    });
  });

  test.each([
    ["fileServer", "File server"],
    ["webApplication", "Web application"],
    ["webdav", "WebDAV daemon"],
  ])("%s is called a %s, and of any type and restart that there is", (name, title) => {
    for (const type of ["exec", "forking", "notify"] as const)
      for (const restart of ["on-failure", "always", "no"] as const) {
        const made = daemonsOf(
          frontEnd({
            application: Application.fileSync({
              installDirectory: "/srv/sync",
              daemons: { [name]: { ...daemon, type, restart } },
            }),
          }),
        )!;
        const { content } = synthesizedFiles(made)[0]!;
        expect(content).toContain(`Description=${title} of the file-sync application\n`);
        expect(content).toMatch(new RegExp(`\nType=${type}\n[^]*\nRestart=${restart}\n`));
      }
  });

  test("are only those that are given, with the names and the database that are given", () => {
    const names = { webApplication: "web.service" };
    const given = { webApplication: daemon, names, databaseUnit: false as const };
    expect(
      units({ application: Application.fileSync({ installDirectory: "/srv/sync", daemons: given }) }),
    ).toEqual({ "web.service": "network.target | portico.service" });
    expect(daemonsOf(frontEnd({}))).toBeUndefined();
  });

  test("are refused with the path of the field", () => {
    const webApplication = {
      ...daemon,
      environment: { SECRET_KEY: "x" },
      command: ["/srv/web.sh", "fastcgi"],
    };
    expect(
      problemsOf(() =>
        frontEnd({
          application: Application.fileSync({ installDirectory: "/srv/sync", daemons: { webApplication } }),
        }),
      ).map((p) => [p.code, p.path]),
    ).toEqual([
      ["unit.secret-in-environment", "Application.fileSync.daemons.webApplication.environment.SECRET_KEY"],
    ]);
    const variant = { webApplication: { ...webApplication, environment: {} } };
    expect(
      problemsOf(() =>
        frontEnd({ application: Application.fileSync({ installDirectory: "/srv/sync", daemons: variant }) }),
      ).map((p) => [p.code, p.path]),
    ).toEqual([
      ["unit.fastcgi-start", "stack/files/Site/Daemons/WebApplication.unit.Service.ExecStart.command"],
    ]);
  });

  test("have everything else that is known only at apply checked then", () => {
    const stack = newStack();
    const text = new TerraformVariable(stack, "text", { type: "string" }).stringValue;
    const number = new TerraformVariable(stack, "number", { type: "number" }).numberValue;
    const { webdav } = new ApplicationDaemons(stack, "daemons", {
      host: new Host(stack, "host", LAN),
      webdav: {
        ...{ ...daemon, user: text, group: text, pidFile: text, workingDirectory: text },
        ...{ environmentFile: text, writableDirectories: ["/srv/known", text] },
        ...{ startTimeoutSeconds: number, stopTimeoutSeconds: number },
      },
    });
    const titles = webdav!.lateValues.map(({ path, message, code }) => `${path}: ${message} [${code}]`);
    const own = titles.filter((title) => title.startsWith("stack/daemons.webdav."));
    const path = "an absolute path of letters, digits, spaces and ./_-+@:,= [config.bad-file-path]";
    const account =
      "an account name of up to 31 letters, digits, `_` and `-` that begins with a letter or `_` [unit.bad-value]";
    expect(own.map((title) => title.slice("stack/daemons.webdav.".length))).toEqual([
      ...["user", "group"].map((name) => `${name}: is not ${account}`),
      ...["workingDirectory", "environmentFile", "pidFile", "writableDirectories[1]"].map(
        (name) => `${name}: is not ${path}`,
      ),
      ...["startTimeoutSeconds", "stopTimeoutSeconds"].map(
        (name) => `${name}: is out of range [config.out-of-range]`,
      ),
    ]);
  });

  test("have words of commands that are known only at apply checked then, wherever they are", () => {
    const stack = newStack();
    const word = new TerraformVariable(stack, "word", { type: "string" }).stringValue;
    const host = new Host(stack, "host", LAN);
    const inShell = { ...daemon, command: ["/bin/sh", "-c", `/srv/web.sh "a\\b\${HOME}" ${word}`] };
    const inEnvironment = { ...daemon, environment: { MODE: word } };
    new ApplicationDaemons(stack, "a", {
      host,
      webApplication: { ...daemon, command: ["/srv/web.sh", word] },
    });
    new ApplicationDaemons(stack, "b", { host, webApplication: inShell, unitDirectory: "/etc/b" });
    new ApplicationDaemons(stack, "c", { host, webApplication: inEnvironment, unitDirectory: "/etc/c" });
    new SystemdUnit(stack, "d", {
      host,
      name: "d.service",
      unit: () => ({ Service: { ExecStart: "/srv/known", ExecStartPre: `/srv/web.sh ${word}` } }),
    });
    // Not a word of a command.
    new SystemdUnit(stack, "f", {
      host,
      name: "f.service",
      unit: {
        Unit: { Description: word },
        Service: { ExecStart: "/srv/known", WorkingDirectory: word, Nice: 1 },
      },
    });
    new ApplicationSettings(stack, "e", {
      host,
      scheme: "https",
      startCommand: ["/srv/web.sh", "start", `--${word}`],
    });
    new ApplicationDaemons(stack, "known", { host, webApplication: daemon, unitDirectory: "/etc/known" });
    const files = stack.node.findAll().filter((one) => one instanceof HostFile);
    const guarded = files.flatMap(({ node, lateValues }) =>
      lateValues.some(({ code }) => code === "unit.fastcgi-start") ? [node.path.split("/")[1]] : [],
    );
    expect(guarded).toEqual(["a", "b", "c", "d", "e"]);
  });
});
