import * as z from "zod";
import { count, directoryUrl, MILLISECONDS_MAX, name, rootsFile, secretFile } from "../schema/fields.js";

/** The targets of the master's notifications. */

const target = {
  name: name("Name of the target in messages and logs; unique.", "phone"),
  url: directoryUrl(
    "URL of the target, `https` only; give either this or `urlFile`. If the URL is a secret, as with " +
      "many services, use `urlFile`.",
    "https://alerts.example.org/portico",
    "config.notification-url",
  ).optional(),
  urlFile: secretFile(
    "File with only the URL, `https` only, optionally with a query.",
    "/etc/portico/notify-url",
  ).optional(),
  roots: rootsFile("the target", "/etc/portico/notify-roots.pem").optional(),
};

const bearer = secretFile(
  "File with a token, which is sent as `Authorization: Bearer TOKEN`.",
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
    tokenFile: secretFile("File with the token of the Gotify application.", "/etc/portico/gotify-token"),
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

/** Options of a target are described as the target is. */
const describedAs = <T extends z.ZodType>(options: T, target: z.ZodType): T =>
  options.describe(target.description!);

export const webhookOptions = describedAs(webhookTarget.omit({ type: true }), webhookTarget);
export const ntfyOptions = describedAs(ntfyTarget.omit({ type: true }), ntfyTarget);
export const gotifyOptions = describedAs(gotifyTarget.omit({ type: true }), gotifyTarget);
export const healthcheckOptions = describedAs(healthcheckTarget.omit({ type: true }), healthcheckTarget);
