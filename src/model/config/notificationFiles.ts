import type { NotificationTargetConfig } from "./config.js";

const FILE_FIELDS = ["urlFile", "tokenFile", "roots"] as const;

type Named = Partial<Record<(typeof FILE_FIELDS)[number], unknown>>;

/** Files whose contents a target needs, by field. */
export const notificationFiles = (target: Named): Readonly<Record<string, string>> =>
  Object.fromEntries(
    FILE_FIELDS.flatMap((field) => {
      const file = target[field];
      return typeof file === "string" ? [[field, file] as const] : [];
    }),
  );

/** The same target with its paths elsewhere. */
export const withNotificationFiles = (
  target: NotificationTargetConfig,
  moved: (path: string) => string,
): NotificationTargetConfig => ({
  ...target,
  ...Object.fromEntries(
    Object.entries(notificationFiles(target)).map(([field, path]) => [field, moved(path)]),
  ),
});
