import * as z from "zod";
import { count, directoryUrl, filePath, MILLISECONDS_MAX, name } from "../fields.js";

/** Whom the master tells what has to be looked after. */

const target = {
  name: name("Name of the target in messages and logs; unique.", "phone"),
  url: directoryUrl(
    "URL of the target, `https` only; give either this field or `urlFile`. If the URL is a secret, as with " +
      "many services, use `urlFile`.",
    "https://alerts.example.org/portico",
    "config.notification-url",
  ).optional(),
  urlFile: filePath(
    "File that contains only the URL, `https` only, with or without a query. Only root has to be able to " +
      "read the file.",
    "/etc/portico/notify-url",
  ).optional(),
  roots: filePath(
    "PEM file with the only root certificates that the proxy trusts for the target; for a private authority. " +
      "Without this field, Node's root certificates.",
    "/etc/portico/notify-roots.pem",
  ).optional(),
};

const bearer = filePath(
  "File with a token, which the proxy sends as `Authorization: Bearer TOKEN`. Only root has to be able to " +
    "read the file.",
  "/etc/portico/notify-token",
).optional();

export const webhookTarget = z
  .strictObject({
    type: z.literal("webhook").describe("The kind."),
    ...target,
    tokenFile: bearer,
  })
  .describe("One POST of a JSON document to a URL.");

export const ntfyTarget = z
  .strictObject({
    type: z.literal("ntfy").describe("The kind."),
    ...target,
    tokenFile: bearer,
  })
  .describe("A message to a topic of an ntfy server; the URL ends in the topic.");

export const gotifyTarget = z
  .strictObject({
    type: z.literal("gotify").describe("The kind."),
    ...target,
    tokenFile: filePath(
      "File with the token of the Gotify application. Only root has to be able to read the file.",
      "/etc/portico/gotify-token",
    ),
  })
  .describe("A message to a Gotify server; the URL is that of the server.");

export const healthcheckTarget = z
  .strictObject({
    type: z.literal("healthcheck").describe("The kind."),
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
    "A service that raises an alarm when pings stop: it also notices when the host or the whole proxy is gone.",
  );

export const notifications = z
  .strictObject({
    targets: z
      .array(z.discriminatedUnion("type", [webhookTarget, ntfyTarget, gotifyTarget, healthcheckTarget]))
      .min(1)
      .max(16)
      .meta({
        description: "Targets, from 1 to 16.",
        examples: [[{ type: "ntfy", name: "phone", urlFile: "/etc/portico/ntfy-url" }]],
      }),
    upstreamDownMs: count(
      120_000,
      1_000,
      MILLISECONDS_MAX,
      "milliseconds",
      "How long a server of an upstream has to be down before the proxy sends a message.",
    ),
    certificateDays: count(
      14,
      1,
      365,
      "days",
      "Number of days before the end of a certificate at which the proxy sends a message; at most a quarter of " +
        "the lifetime of the certificate.",
    ),
    diskFreePercentMin: count(
      5,
      1,
      50,
      "percent",
      "The proxy sends a message if the disks of logs and state have less free space, or fewer free inodes, " +
        "than this share.",
    ),
    repeatMs: count(
      21_600_000,
      60_000,
      MILLISECONDS_MAX,
      "milliseconds",
      "Interval after which the proxy repeats the message about a problem that lasts.",
    ),
  })
  .describe(
    "Messages to targets when a certificate is not renewed, a server stays down, a disk is nearly full, " +
      "workers end repeatedly, a reload is refused, or an activation is rolled back. Without this field, the " +
      "proxy sends no messages.",
  );

/** What methods of `Notification` take: the kind is the method. */
export const webhookOptions = webhookTarget.omit({ type: true });
export const ntfyOptions = ntfyTarget.omit({ type: true });
export const gotifyOptions = gotifyTarget.omit({ type: true });
export const healthcheckOptions = healthcheckTarget.omit({ type: true });
