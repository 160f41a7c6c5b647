import type {
  gotifyOptions,
  gotifyTarget,
  healthcheckOptions,
  healthcheckTarget,
  notifications,
  ntfyOptions,
  ntfyTarget,
  webhookOptions,
  webhookTarget,
} from "../model/config/notifications.js";
import type { InputOf } from "../model/inferred.js";

/** Options of a webhook: one POST of a JSON document. */
export interface WebhookOptions extends InputOf<typeof webhookOptions> {}

/** A message to a topic of an ntfy server; the URL ends in the topic: `https://ntfy.example.org/hosts`. */
export interface NtfyOptions extends InputOf<typeof ntfyOptions> {}

/** A message to a Gotify server, by the URL of the server. */
export interface GotifyOptions extends InputOf<typeof gotifyOptions> {}

/** Options of a service that raises an alarm when pings stop. */
export interface HealthcheckOptions extends InputOf<typeof healthcheckOptions> {}

/** A webhook in the config. */
export interface WebhookTarget extends WebhookOptions, Pick<InputOf<typeof webhookTarget>, "type"> {}

/** A topic of an ntfy server in the config. */
export interface NtfyTarget extends NtfyOptions, Pick<InputOf<typeof ntfyTarget>, "type"> {}

/** A Gotify server in the config. */
export interface GotifyTarget extends GotifyOptions, Pick<InputOf<typeof gotifyTarget>, "type"> {}

/** A service that receives pings, in the config. */
export interface HealthcheckTarget
  extends HealthcheckOptions, Pick<InputOf<typeof healthcheckTarget>, "type"> {}

/** A target of notifications. */
export type NotificationTarget = WebhookTarget | NtfyTarget | GotifyTarget | HealthcheckTarget;

/** Creates targets of notifications. */
export abstract class Notification {
  /** One POST of a JSON document: `title`, `text`, and `events` with their fixes. */
  static webhook(options: WebhookOptions): WebhookTarget {
    return { type: "webhook", ...options };
  }

  /** A message to a topic of an ntfy server. */
  static ntfy(options: NtfyOptions): NtfyTarget {
    return { type: "ntfy", ...options };
  }

  /** A message to a Gotify server. */
  static gotify(options: GotifyOptions): GotifyTarget {
    return { type: "gotify", ...options };
  }

  /** Regular GET requests while no problem exists; the service raises an alarm when the requests stop. */
  static healthcheck(options: HealthcheckOptions): HealthcheckTarget {
    return { type: "healthcheck", ...options };
  }
}

/** Targets of notifications, and thresholds. */
export interface ProxyNotifications extends InputOf<typeof notifications> {
  readonly targets: readonly NotificationTarget[];
}
