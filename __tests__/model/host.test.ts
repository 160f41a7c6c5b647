import { exposedPorts, type HostAddresses, hostProblems, loopbackPorts } from "../../src/model/host/host.js";
import type { Problem } from "../../src/model/index.js";
import { sayings } from "../../testkit/sayings.js";

/** Problems of a host's addresses, each with its place and what it says. */

const said = sayings("hosts");
const of = (host: Partial<HostAddresses>): readonly Problem[] =>
  said(hostProblems({ address: "192.168.1.10", ...host }, "host"));

const MASK = "255.255.255.0";

test.each<[Partial<HostAddresses>, string[]]>([
  [{}, []],
  [
    { address: "224.0.0.0", netmask: "240.0.0.0" },
    ["host.address cannot be the permanent address of a host"],
  ],
  [{ address: "x", netmask: MASK, gateway: "10.0.0.1" }, ["host.address is not an IPv4 address"]],
  [{ address: "::1" }, ["host.address is an IPv6 address"]],
  [{ address: "192.168.1.0", netmask: MASK }, ["host.address is the network address of its own subnet"]],
  [{ address: "192.168.1.255", netmask: MASK }, ["host.address is the broadcast address of its own subnet"]],
  [{ address: "192.168.1.1", netmask: "255.255.255.254" }, []],
  [
    { address: "192.168.1.3", netmask: "255.255.255.252" },
    ["host.address is the broadcast address of its own subnet"],
  ],
  [{ netmask: MASK, gateway: "192.168.2.1" }, ["host.gateway is outside the host's subnet"]],
  [{ netmask: MASK, gateway: "192.168.1.10" }, ["host.gateway is the host's own address"]],
  [{ netmask: "255.255.255.254", gateway: "192.168.1.12" }, ["host.gateway is outside the host's subnet"]],
  [{ netmask: "255.255.255.255", gateway: "192.168.2.1" }, []],
  [{ netmask: "0.0.0.0" }, ["host.netmask is not a netmask"]],
  [{ netmask: "128.0.0.0" }, []],
  [{ virtualAddress: "224.0.0.1" }, ["host.virtualAddress cannot be the virtual address of two hosts"]],
  [{ virtualAddress: "x" }, ["host.virtualAddress cannot be the virtual address of two hosts"]],
  [{ virtualAddress: "192.168.1.10" }, ["host.virtualAddress is the host's address"]],
  [{ virtualAddress: "192.168.1.1", gateway: "192.168.1.1" }, ["host.virtualAddress is the host's gateway"]],
  [{ virtualAddress: "192.168.2.1", netmask: MASK }, ["host.virtualAddress is outside the host's subnet"]],
  [{ virtualAddress: "192.168.1.11", netmask: MASK }, []],
  [{ dhcpRange: { from: "192.168.1.11", to: "192.168.1.11" } }, []],
  [{ dhcpRange: { from: "192.168.1.1", to: "192.168.1.9" } }, []],
  ...[
    { from: "192.168.1.10", to: "192.168.1.10" },
    { from: "192.168.1.10", to: "192.168.1.20" },
    { from: "192.168.1.1", to: "192.168.1.10" },
  ].map((dhcpRange): [object, string[]] => [
    { dhcpRange },
    ["host.address is an address that the router may assign to another host"],
  ]),
  ...[
    { from: "x", to: "192.168.1.20" },
    { from: "192.168.1.11", to: "x" },
    { from: "192.168.1.12", to: "192.168.1.11" },
  ].map((dhcpRange): [object, string[]] => [
    { dhcpRange },
    ["host.dhcpRange is not a range of IPv4 addresses"],
  ]),
  ...["temporary", "deprecated", "tentative", "dadfailed"].map((flag): [object, string[]] => [
    { ipv6Flags: ["dynamic", flag] },
    [`host.ipv6Flags marks the address as ${flag}`],
  ]),
  [{ ipv6Address: "fe80::1" }, ["host.ipv6Address is a link-local address"]],
  [{ ipv6Address: "::1" }, ["host.ipv6Address is a loopback address"]],
  [{ ipv6Address: "ff02::1" }, ["host.ipv6Address is not of global scope"]],
  [{ ipv6Address: "192.0.2.1" }, ["host.ipv6Address is not an IPv6 address"]],
  [{ ipv6Address: "fd00::1%eth0" }, ["host.ipv6Address is not an IPv6 address"]],
  [{ publicName: "files.123" }, ["host.publicName is not a domain name"]],
  [{ publicName: "123.example" }, []],
])("%j", (host, problems) => {
  expect(of(host).map(({ path, message }) => `${path} ${message}`)).toEqual(problems);
});

test("ports are listed once, in order", () => {
  expect(exposedPorts([8443, 443, 80, 443], undefined)).toEqual([80, 443, 8443]);
  expect(exposedPorts([443, 80], 22)).toEqual([22, 80, 443]);
  const upstreams = ["http://127.0.0.1:8000", "http://10.0.0.1:9000", "http://[::1]:80"];
  expect(loopbackPorts(upstreams)).toEqual([80, 3306, 8000]);
  expect(loopbackPorts([], 3307)).toEqual([3307]);
});
