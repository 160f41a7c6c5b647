import * as z from "zod";
import { cidr, filePath, flag, ipAddress, port } from "../fields.js";

const overTcp = z
  .strictObject({
    address: ipAddress(
      "Local address: loopback, private or link-local; a public one only with `allow`.",
      "127.0.0.1",
    ),
    port: port("TCP port.", 9181),
    allow: z
      .array(cidr("An address or range.", "10.0.0.0/8"))
      .default([])
      .meta({
        description:
          "Who may ask: addresses and CIDR ranges, of connections and not of forwarding fields. All others are " +
          "disconnected. Empty for everyone who reaches it.",
        examples: [["10.0.0.0/8"]],
      }),
    anyAddress: flag(
      false,
      "Whether `address` may be `0.0.0.0` or `::` without `allow`. For a container, whose network is its own.",
    ),
  })
  .meta({ title: "address", description: "It listens on an address." });

const overUnix = z
  .strictObject({
    path: filePath(
      "Unix socket, made with mode 0660; its directory decides who gets there.",
      "/run/portico/metrics.sock",
    ),
  })
  .meta({ title: "socket", description: "It listens on a Unix socket." });

export const metricsListener = z.union([overTcp, overUnix]).meta({
  description:
    "Where monitoring asks over HTTP: `/metrics` is for Prometheus, and `/status` for people: what goes on. What it " +
    "shows is counted in any case; nothing listens without it.",
  examples: [{ address: "127.0.0.1", port: 9181 }],
});
