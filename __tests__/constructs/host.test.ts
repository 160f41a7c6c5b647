import { TerraformVariable } from "cdktf";
import { lateHostChecks } from "../../src/constructs/props/hostChecks.js";
import { Host, type HostProps, ReverseProxy } from "../../src/index.js";
import { newStack, problemsOf } from "../../testkit/stacks.js";

const host = (props: HostProps): Host => new Host(newStack(), "host", props);
const refused = (props: HostProps): [string, string][] =>
  problemsOf(() => host(props)).map((p) => [p.code, p.path.replace("stack/host.", "")]);

describe("a host is refused", () => {
  const at = (more: Partial<HostProps>): HostProps => ({ address: "192.168.1.10", ...more });
  const VIRTUAL = "host.bad-virtual-address";
  const lan = { netmask: "255.255.255.0" };
  const ipv6 = (...all: string[]) => all.map((ipv6Address) => ({ ipv6Address }));
  const range = (from: number, to: number) => ({
    dhcpRange: { from: `192.168.1.${from}`, to: `192.168.1.${to}` },
  });
  // Others are among the mistakes of `mistakes.ts`.
  test.each<[code: string, at: string, ...all: Partial<HostProps>[]]>([
    [
      "host.bad-ipv4",
      "address",
      ...["192.0.2.256", "192.0.2.010", "0.0.0.0"].map((address) => ({ address })),
    ],
    ["host.bad-network", "netmask", { netmask: "0.0.0.0" }, { netmask: "24" }],
    ["host.bad-network", "address", { ...lan, address: "192.168.1.255" }],
    ["host.bad-network", "gateway", { ...lan, gateway: "192.168.1.10" }],
    ["host.bad-nameserver", "nameservers[1]", { nameservers: ["9.9.9.9", "dns"] }],
    ["host.inside-dhcp-range", "address", range(10, 20)],
    ["host.bad-dhcp-range", "dhcpRange", range(20, 11)],
    [VIRTUAL, "virtualAddress", { virtualAddress: "192.168.1.10" }, { virtualAddress: "2001:db8::20" }],
    [VIRTUAL, "virtualAddress", { gateway: "192.168.1.1", virtualAddress: "192.168.1.1" }],
    [VIRTUAL, "virtualAddress", { ...lan, virtualAddress: "192.168.2.20" }],
    ["host.inside-dhcp-range", "virtualAddress", { virtualAddress: "192.168.1.25", ...range(20, 30) }],
    ["host.bad-ipv6", "ipv6Address", ...ipv6("2001:db8::1/64", "::1", "::", "ff02::1", "fec0::1")],
    ["host.bad-ipv6", "ipv6Address", ...ipv6("::ffff:192.0.2.1")],
    ["host.bad-ipv6", "ipv6Flags", { ipv6Address: "2001:db8::1", ipv6Flags: ["dynamic", "deprecated"] }],
    [
      ...(["host.bad-name", "publicName"] as const),
      ...["files.example.org.", "192.0.2.1", "_"].map((publicName) => ({ publicName })),
    ],
    ["host.bad-name", "dnsDomain", { dnsDomain: "my domain" }],
  ])("%s, %s: %j", (code, path, ...all) => {
    for (const more of all) expect([more, refused(at(more))]).toEqual([more, [[code, path]]]);
  });

  test("with every problem at once, each with received, allowed and fix", () => {
    const problems = problemsOf(() =>
      host({
        address: "192.168.1.255",
        netmask: "255.255.255.0",
        gateway: "10.0.0.1",
        ipv6Address: "fe80::1",
      }),
    );
    expect(problems.map((p) => p.path)).toEqual([
      "stack/host.address",
      "stack/host.gateway",
      "stack/host.ipv6Address",
    ]);
    for (const p of problems)
      expect(p).toMatchObject({ received: expect.anything(), allowed: expect.anything(), fix: /./ });
  });
});

describe("a host is accepted", () => {
  test.each<[string, HostProps]>([
    ["with an address only", { address: "192.0.2.10" }],
    ["on loopback, for trials", { address: "127.0.0.1" }],
    ["with names that end in a digit", { address: "192.0.2.10", publicName: "files.1a2", dnsDomain: "lan1" }],
    [
      "with all of its network",
      {
        address: "192.168.1.10",
        netmask: "255.255.255.0",
        gateway: "192.168.1.1",
        dnsDomain: "lan",
        nameservers: ["192.168.1.1", "2620:fe::fe"],
        ipv6Address: "2001:db8::10",
        ipv6Flags: ["dynamic", "mngtmpaddr", "noprefixroute"],
        publicName: "files.example.org",
        dhcpRange: { from: "192.168.1.100", to: "192.168.1.199" },
      },
    ],
    ["on a /31 link", { address: "192.168.1.0", netmask: "255.255.255.254", gateway: "192.168.1.1" }],
    ["with a provider's /32", { address: "203.0.113.7", netmask: "255.255.255.255", gateway: "172.31.1.1" }],
    ["with a unique-local IPv6 address", { address: "192.0.2.10", ipv6Address: "fd00::1" }],
  ])("%s", (_, props) => {
    expect(host(props).address).toBe(props.address);
  });
});

test("a public name replaces the addresses as server name", () => {
  const ipv6Address = "2001:0DB8:0:0::0010";
  expect(host({ address: "192.0.2.10" }).serverNames).toEqual(["192.0.2.10"]);
  expect(host({ address: "192.0.2.10", ipv6Address }).serverNames).toEqual(["192.0.2.10", "2001:db8::10"]);
  const named = host({ address: "192.0.2.10", ipv6Address, publicName: "files.example.org" });
  expect(named.serverNames).toEqual(["files.example.org"]);
});

describe("DNS records are offered for public addresses only (service 1.6)", () => {
  const publicName = "files.example.org";
  test.each<[string, HostProps, string[]]>([
    [
      "both public",
      { address: "9.9.9.9", ipv6Address: "2620:fe::fe", publicName },
      ["A 9.9.9.9", "AAAA 2620:fe::fe"],
    ],
    [
      "private IPv4",
      { address: "192.168.1.10", ipv6Address: "2620:fe::fe", publicName },
      ["AAAA 2620:fe::fe"],
    ],
    ["shared IPv4 (carrier NAT)", { address: "100.64.0.1", publicName }, []],
    ["unique-local IPv6", { address: "9.9.9.9", ipv6Address: "fd00::1", publicName }, ["A 9.9.9.9"]],
    ["no name", { address: "9.9.9.9" }, []],
  ])("%s", (_, props, expected) => {
    expect(host(props).dnsRecords.map((r) => `${r.type} ${r.value}`)).toEqual(expected);
    for (const record of host(props).dnsRecords) expect(record.name).toBe(publicName);
  });
});

test("port forwards are needed behind NAT only (service 1.5)", () => {
  const ports = { from: 443, to: 8443 };
  expect(host({ address: "9.9.9.9" }).portForwards(ports)).toEqual([]);
  expect(host({ address: "192.168.1.10" }).portForwards(ports)).toEqual([
    { protocol: "tcp", port: 443, toAddress: "192.168.1.10", toPort: 8443 },
  ]);
});

test("values that are not known yet are not judged, and the others are", () => {
  const stack = newStack();
  const text = new TerraformVariable(stack, "text", { type: "string" }).stringValue;
  const known = new Host(stack, "host", {
    address: text,
    netmask: "255.255.255.0",
    gateway: text,
    ipv6Address: text,
    publicName: text,
    dnsDomain: text,
    nameservers: [text],
    dhcpRange: { from: text, to: text },
  });
  expect([known.serverNames, known.dnsRecords]).toEqual([[text], []]);
  const bad = problemsOf(() => new Host(stack, "bad", { address: text, netmask: "x", publicName: text }));
  expect(bad.map((p) => [p.code, p.path])).toEqual([["host.bad-network", "stack/bad.netmask"]]);
});

test("what is known only at apply is checked by the host, each value by its rule", () => {
  const stack = newStack();
  const text = new TerraformVariable(stack, "t", { type: "string" }).stringValue;
  const late = new Host(stack, "host", {
    ...{ address: text, virtualAddress: text, gateway: text, dnsDomain: text, ipv6Address: text },
    ...{ publicName: text, nameservers: ["192.0.2.1", text] },
    sshPort: new TerraformVariable(stack, "n", { type: "number" }).numberValue,
  });
  expect(lateHostChecks(late).map(({ path, message, code }) => `${path}: ${message} [${code}]`)).toEqual([
    "stack/host.address: is not a static IPv4 address such as 192.0.2.10 [host.bad-ipv4]",
    "stack/host.virtualAddress: is not a static IPv4 address such as 192.0.2.10 [host.bad-virtual-address]",
    "stack/host.ipv6Address: is not an IPv6 address such as 2001:db8::1 [host.bad-ipv6]",
    "stack/host.publicName: is not a domain name in lower case, without a port [host.bad-name]",
    "stack/host.gateway: is not the router's IPv4 address, such as 192.0.2.1 [host.bad-network]",
    "stack/host.dnsDomain: is not a domain name in lower case, without a port [host.bad-name]",
    "stack/host.nameservers[1]: is not an IPv4 or IPv6 address [host.bad-nameserver]",
    "stack/host.sshPort: is out of range [config.out-of-range]",
  ]);
});

describe("a proxy", () => {
  test("makes the host of its props", () => {
    const proxy = new ReverseProxy(newStack(), "proxy", { host: { address: "192.0.2.10" } });
    expect([(proxy.host as Host).node.path, proxy.host.address]).toEqual(["stack/proxy/Host", "192.0.2.10"]);
  });

  test("says what is wrong with them together with its own props", () => {
    const refused = problemsOf(
      () => new ReverseProxy(newStack(), "proxy", { host: { address: "192.0.2.256" }, workers: 1_000 }),
    );
    expect(refused.map(({ path }) => path)).toEqual(["stack/proxy/Host.address", "stack/proxy.workers"]);
  });
});
