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

/** One POST of a JSON document. */
export interface WebhookOptions extends InputOf<typeof webhookOptions> {}

/** A message to a topic of an ntfy server; the URL ends in the topic: `https://ntfy.example.org/hosts`. */
export interface NtfyOptions extends InputOf<typeof ntfyOptions> {}

/** A message to a Gotify server; the URL is that of the server. */
export interface GotifyOptions extends InputOf<typeof gotifyOptions> {}

/** A service that gives alarm when pings stop. */
export interface HealthcheckOptions extends InputOf<typeof healthcheckOptions> {}

/** A webhook, as a config has it. */
export interface WebhookTarget extends WebhookOptions, Pick<InputOf<typeof webhookTarget>, "type"> {}

/** A topic of an ntfy server, as a config has it. */
export interface NtfyTarget extends NtfyOptions, Pick<InputOf<typeof ntfyTarget>, "type"> {}

/** A Gotify server, as a config has it. */
export interface GotifyTarget extends GotifyOptions, Pick<InputOf<typeof gotifyTarget>, "type"> {}

/** A service that is pinged, as a config has it. */
export interface HealthcheckTarget
  extends HealthcheckOptions, Pick<InputOf<typeof healthcheckTarget>, "type"> {}

/** Somebody whom a proxy tells. */
export type NotificationTarget = WebhookTarget | NtfyTarget | GotifyTarget | HealthcheckTarget;

/** Makes targets of notifications. */
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

  /** A GET from time to time while nothing is wrong; the service that it goes to gives alarm when it stops. */
  static healthcheck(options: HealthcheckOptions): HealthcheckTarget {
    return { type: "healthcheck", ...options };
  }
}

/** Whom a proxy tells, and of what. */
export interface ProxyNotifications extends InputOf<typeof notifications> {
  readonly targets: readonly NotificationTarget[];
}
