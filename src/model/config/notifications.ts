import * as z from "zod";
import { count, directoryUrl, filePath, MILLISECONDS_MAX, name } from "../fields.js";

/** The targets of the master's notifications. */

const target = {
  name: name("Name of the target in messages and logs; unique.", "phone"),
  url: directoryUrl(
    "URL of the target, `https` only; give either this or `urlFile`. If the URL is a secret, as with " +
      "many services, use `urlFile`.",
    "https://alerts.example.org/portico",
    "config.notification-url",
  ).optional(),
  urlFile: filePath(
    "File with only the URL, `https` only, optionally with a query. Only root needs to read the file.",
    "/etc/portico/notify-url",
  ).optional(),
  roots: filePath(
    "PEM file with the only root certificates that the proxy trusts for the target; needed for a " +
      "private authority. Default: Node's root certificates.",
    "/etc/portico/notify-roots.pem",
  ).optional(),
};

const bearer = filePath(
  "File with a token, which is sent as `Authorization: Bearer TOKEN`. Only root needs to read the file.",
  "/etc/portico/notify-token",
).optional();

export const webhookTarget = z
  .strictObject({
    type: z.literal("webhook").describe("Kind of the target."),
    ...target,
    tokenFile: bearer,
  })
  .describe("A POST request with a JSON document.");

export const ntfyTarget = z
  .strictObject({
    type: z.literal("ntfy").describe("Kind of the target."),
    ...target,
    tokenFile: bearer,
  })
  .describe("A message to a topic of an ntfy server. The URL ends in the topic.");

export const gotifyTarget = z
  .strictObject({
    type: z.literal("gotify").describe("Kind of the target."),
    ...target,
    tokenFile: filePath(
      "File with the token of the Gotify application. Only root needs to read the file.",
      "/etc/portico/gotify-token",
    ),
  })
  .describe("A message to a Gotify server. Give the URL of the server.");

export const healthcheckTarget = z
  .strictObject({
    type: z.literal("healthcheck").describe("Kind of the target."),
    ...target,
    intervalMs: count(
      60_000,
      10_000,
      86_400_000,
      "milliseconds",
      "Interval between GET requests while there is no problem.",
    ),
  })
  .describe(
    "A service that raises an alarm when pings stop, so that it also notices a failed host or proxy.",
  );

export const notifications = z
  .strictObject({
    targets: z
      .array(z.discriminatedUnion("type", [webhookTarget, ntfyTarget, gotifyTarget, healthcheckTarget]))
      .min(1)
      .max(16)
      .meta({
        description: "1 to 16 targets.",
        examples: [[{ type: "ntfy", name: "phone", urlFile: "/etc/portico/ntfy-url" }]],
      }),
    upstreamDownMs: count(
      120_000,
      1_000,
      MILLISECONDS_MAX,
      "milliseconds",
      "How long a server of an upstream must be down before the proxy sends a notification.",
    ),
    certificateDays: count(
      14,
      1,
      365,
      "days",
      "Notify this many days before a certificate expires, or a quarter of its lifetime before, " +
        "whichever is shorter.",
    ),
    diskFreePercentMin: count(
      5,
      1,
      50,
      "percent",
      "Notify if less than this share of space or inodes is free on the disks of logs and state.",
    ),
    repeatMs: count(
      21_600_000,
      60_000,
      MILLISECONDS_MAX,
      "milliseconds",
      "Interval after which the message about an unresolved problem is repeated.",
    ),
  })
  .describe(
    "Notifications when a certificate is not renewed, a server stays down, a disk is nearly full, " +
      "workers end repeatedly, a reload is refused, or an activation is rolled back. Without this " +
      "field, no message is sent.",
  );

/** The options of the methods of `Notification`: the kind is the method. */
export const webhookOptions = webhookTarget.omit({ type: true });
export const ntfyOptions = ntfyTarget.omit({ type: true });
export const gotifyOptions = gotifyTarget.omit({ type: true });
export const healthcheckOptions = healthcheckTarget.omit({ type: true });
