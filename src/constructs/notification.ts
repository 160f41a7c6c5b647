/**
 * Whom a proxy tells what somebody has to look after. The config's own types are derived from its schema and have no hover
 * text in an editor, so each field is described again here; tests keep the two the same.
 */

/** What every target has. Exactly one of `url` and `urlFile` is given (`config.notification-url`). */
export interface AnyNotificationTarget {
  readonly name: string;
  readonly url?: string;
  readonly urlFile?: string;
  readonly roots?: string;
}

/** One POST of a JSON document. */
export interface WebhookOptions extends AnyNotificationTarget {
  readonly tokenFile?: string;
}

/** A message to a topic of an ntfy server; the URL ends in the topic: `https://ntfy.example.org/hosts`. */
export interface NtfyOptions extends AnyNotificationTarget {
  readonly tokenFile?: string;
}

/** A message to a Gotify server; the URL is that of the server. */
export interface GotifyOptions extends AnyNotificationTarget {
  readonly tokenFile: string;
}

/** A service that gives alarm when pings stop. */
export interface HealthcheckOptions extends AnyNotificationTarget {
  readonly intervalMs?: number;
}

/** A webhook, as a config has it. */
export interface WebhookTarget extends WebhookOptions {
  readonly type: "webhook";
}

/** A topic of an ntfy server, as a config has it. */
export interface NtfyTarget extends NtfyOptions {
  readonly type: "ntfy";
}

/** A Gotify server, as a config has it. */
export interface GotifyTarget extends GotifyOptions {
  readonly type: "gotify";
}

/** A service that is pinged, as a config has it. */
export interface HealthcheckTarget extends HealthcheckOptions {
  readonly type: "healthcheck";
}

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
export interface ProxyNotifications {
  readonly targets: readonly NotificationTarget[];
  readonly upstreamDownMs?: number;
  readonly certificateDays?: number;
  readonly diskFreePercentMin?: number;
  readonly repeatMs?: number;
}
