import * as z from "zod";
import { ipAddress, port, serverName } from "../schema/fields.js";

/** The expected network around a host, as a deployment describes it. */

export const portForward = z.strictObject({
  protocol: z.literal("tcp").describe("Transport protocol."),
  port: port("Port on the router."),
  toAddress: ipAddress("Address of the host."),
  toPort: port("Port on the host."),
});

export const dnsRecord = z.strictObject({
  name: serverName("Name of the record, without a dot at its end."),
  type: z.enum(["A", "AAAA"]).describe("`A` for an IPv4 address, `AAAA` for an IPv6 address."),
  value: ipAddress("Address that the name resolves to."),
});

export const network = z
  .strictObject({
    addresses: z
      .array(ipAddress("An address."))
      .default([])
      .describe("Addresses of the host, or addresses that a router translates to an address of the host."),
    portForwards: z.array(portForward).default([]).describe("Forwards that a NAT router needs."),
    dnsRecords: z.array(dnsRecord).default([]).describe("DNS records that point to the host."),
    exposedPorts: z.array(port("A port.")).default([]).describe("TCP ports that other hosts reach."),
    loopbackPorts: z
      .array(port("A port."))
      .default([])
      .describe("TCP ports that only the host itself may reach."),
  })
  .describe(
    "The expected network around the host, for checks by `portico doctor`. Without this field, nothing is " +
      "checked.",
  );
