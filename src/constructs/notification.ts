/**
 * Whom a proxy tells what somebody has to look after. The config's own types are derived from its schema and have no hover
 * text in an editor, so each field is described again here; tests keep the two the same.
 */

/** What every target has. Exactly one of `url` and `urlFile` is given (`config.notification-url`). */
export interface AnyNotificationTarget {
  /** Name in messages and logs, unique: letters, digits, `-`, `_`, `.`. */
  readonly name: string;
  readonly url?: string;
  /**
   * File on the host with the URL alone; only root has to read it, and the service gets it as a credential. Absolute path.
   * @default - `url`
   */
  readonly urlFile?: string;
  /**
   * PEM file on the host: root certificates by which it is trusted, and no others. Absolute path.
   * @default - Node's roots
   */
  readonly roots?: string;
}

/** One POST of a JSON document. */
export interface WebhookOptions extends AnyNotificationTarget {
  /**
   * File on the host with a token, which is sent as `Authorization: Bearer TOKEN`. Absolute path.
   * @default - none is sent
   */
  readonly tokenFile?: string;
}

/** A message to a topic of an ntfy server; the URL ends in the topic: `https://ntfy.example.org/hosts`. */
export interface NtfyOptions extends AnyNotificationTarget {
  /**
   * File on the host with an access token. Absolute path.
   * @default - none is sent
   */
  readonly tokenFile?: string;
}

/** A message to a Gotify server; the URL is that of the server. */
export interface GotifyOptions extends AnyNotificationTarget {
  /** File on the host with the token of the Gotify application. Absolute path. */
  readonly tokenFile: string;
}

/** A service that gives alarm when pings stop. */
export interface HealthcheckOptions extends AnyNotificationTarget {
  /**
   * How often it is asked for while nothing is wrong, in milliseconds from 10000 to 86400000.
   * @default 60000
   */
  readonly intervalMs?: number;
}

/** A webhook, as a config has it. */
export interface WebhookTarget extends WebhookOptions {
  /** The kind. */
  readonly type: "webhook";
}

/** A topic of an ntfy server, as a config has it. */
export interface NtfyTarget extends NtfyOptions {
  /** The kind. */
  readonly type: "ntfy";
}

/** A Gotify server, as a config has it. */
export interface GotifyTarget extends GotifyOptions {
  /** The kind. */
  readonly type: "gotify";
}

/** A service that is pinged, as a config has it. */
export interface HealthcheckTarget extends HealthcheckOptions {
  /** The kind. */
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
  /** Who is told, from 1 to 16. */
  readonly targets: readonly NotificationTarget[];
  /**
   * How long a server of an upstream is down before that is told, in milliseconds from 1000 to 2147483647.
   * @default 120000
   */
  readonly upstreamDownMs?: number;
  /**
   * From how many days before its end a certificate is told of, from 1 to 365; at most a quarter of its whole time.
   * @default 14
   */
  readonly certificateDays?: number;
  /**
   * Less room, or fewer free inodes, on the disks of logs and state is told: percent, from 1 to 50.
   * @default 5
   */
  readonly diskFreePercentMin?: number;
  /**
   * What goes on is told again after this time, and nothing is told twice before: in milliseconds from 60000 to 2147483647.
   * @default 21600000
   */
  readonly repeatMs?: number;
}
