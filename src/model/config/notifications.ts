import * as z from "zod";
import { count, directoryUrl, filePath, MILLISECONDS_MAX, name } from "../fields.js";

/** Whom the master tells what has to be looked after. */

const target = {
  name: name("Name of the target in messages and logs; unique.", "phone"),
  url: directoryUrl(
    "Where it is, `https` only; either this or `urlFile`. Where the URL itself is a secret, as those of many services are, give `urlFile`.",
    "https://alerts.example.org/portico",
    "config.notification-url",
  ).optional(),
  urlFile: filePath(
    "File with the URL alone, `https` only, a query if need be. Only root has to read it.",
    "/etc/portico/notify-url",
  ).optional(),
  roots: filePath(
    "PEM file: root certificates by which it is trusted, and no others; for a private authority. By default the roots that Node brings.",
    "/etc/portico/notify-roots.pem",
  ).optional(),
};

const bearer = filePath(
  "File with a token, which is sent as `Authorization: Bearer TOKEN`. Only root has to read it.",
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
      "File with the token of the Gotify application. Only root has to read it.",
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
      "How often it is asked for by GET, while nothing is wrong.",
    ),
  })
  .describe(
    "A service that gives alarm when pings stop: it also notices when the host or the whole proxy is gone.",
  );

export const notifications = z
  .strictObject({
    targets: z
      .array(z.discriminatedUnion("type", [webhookTarget, ntfyTarget, gotifyTarget, healthcheckTarget]))
      .min(1)
      .max(16)
      .meta({
        description: "Who is told: from 1 to 16 targets.",
        examples: [[{ type: "ntfy", name: "phone", urlFile: "/etc/portico/ntfy-url" }]],
      }),
    upstreamDownMs: count(
      120_000,
      1_000,
      MILLISECONDS_MAX,
      "milliseconds",
      "How long a server of an upstream is down before that is told.",
    ),
    certificateDays: count(
      14,
      1,
      365,
      "days",
      "From how many days before its end a certificate is told of; at most a quarter of its whole time.",
    ),
    diskFreePercentMin: count(
      5,
      1,
      50,
      "percent",
      "Less room, or fewer free inodes, on the disks of logs and state is told.",
    ),
    repeatMs: count(
      21_600_000,
      60_000,
      MILLISECONDS_MAX,
      "milliseconds",
      "A message about a lasting problem is repeated after this time, and not before.",
    ),
  })
  .describe(
    "The targets of the master's messages when a certificate is not renewed, a server stays down, a disk is nearly full, " +
      "workers end repeatedly, a reload is refused, or an activation is rolled back. Without it, no message is sent.",
  );

/** What methods of `Notification` take: the kind is the method. */
export const webhookOptions = webhookTarget.omit({ type: true });
export const ntfyOptions = ntfyTarget.omit({ type: true });
export const gotifyOptions = gotifyTarget.omit({ type: true });
export const healthcheckOptions = healthcheckTarget.omit({ type: true });
