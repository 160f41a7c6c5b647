import * as z from "zod";
import { ipAddress, port, serverName } from "./fields.js";

/** What the network around a host should look like, as a deployment describes it. */

export const portForward = z.strictObject({
  protocol: z.literal("tcp").describe("Transport protocol."),
  port: port("Port of the router."),
  toAddress: ipAddress("Address of the host."),
  toPort: port("Port of the host."),
});

export const dnsRecord = z.strictObject({
  name: serverName("Name of the record, without a dot at its end."),
  type: z.enum(["A", "AAAA"]).describe("`A` for an IPv4 address, `AAAA` for an IPv6 address."),
  value: ipAddress("Address that the name leads to."),
});

export const network = z
  .strictObject({
    addresses: z
      .array(ipAddress("An address."))
      .default([])
      .describe("Addresses of the host, or addresses that a router translates to an address of the host."),
    portForwards: z.array(portForward).default([]).describe("Forwards that a NAT router needs."),
    dnsRecords: z.array(dnsRecord).default([]).describe("DNS records that lead to the host."),
    exposedPorts: z.array(port("A port.")).default([]).describe("TCP ports open to everyone."),
    loopbackPorts: z.array(port("A port.")).default([]).describe("TCP ports that only the host may reach."),
  })
  .describe(
    "The network around the host, with which `portico doctor` compares. Without this field, nothing is compared.",
  );
