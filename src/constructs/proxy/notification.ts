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
} from "../../model/config/notifications.js";
import type { InputOf } from "../../model/schema/inferred.js";

export interface WebhookOptions extends InputOf<typeof webhookOptions> {}

export interface NtfyOptions extends InputOf<typeof ntfyOptions> {}

export interface GotifyOptions extends InputOf<typeof gotifyOptions> {}

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
  /** A target whose JSON document has `title`, `text`, and `events` with their fixes. */
  static webhook(options: WebhookOptions): WebhookTarget {
    return { type: "webhook", ...options };
  }

  /** A target with a topic of ntfy. */
  static ntfy(options: NtfyOptions): NtfyTarget {
    return { type: "ntfy", ...options };
  }

  /** A target with an application of Gotify. */
  static gotify(options: GotifyOptions): GotifyTarget {
    return { type: "gotify", ...options };
  }

  /** A target that gets GET requests while no problem exists. */
  static healthcheck(options: HealthcheckOptions): HealthcheckTarget {
    return { type: "healthcheck", ...options };
  }
}

/** Targets of notifications, and thresholds. */
export interface ProxyNotifications extends InputOf<typeof notifications> {
  readonly targets: readonly NotificationTarget[];
}
