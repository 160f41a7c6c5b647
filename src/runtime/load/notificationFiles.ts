import {
  notificationFiles,
  type NotificationTargetConfig,
  type Problem,
  problem,
  type ProxyConfig,
} from "../../model/serving.js";
import { readRoots } from "./authorityFiles.js";
import type { FindCredential } from "./credentials.js";
import { readSecret, readText } from "./files.js";

/** Problems and warnings about the files of notifications. No message contains their contents. */
export interface NotificationFileFindings {
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
}

/** Reads the secrets of notifications as they are now. */
export async function checkNotificationFiles(
  { notifications }: ProxyConfig,
  find: FindCredential,
): Promise<NotificationFileFindings> {
  const problems: Problem[] = [];
  const warnings: Problem[] = [];
  for (const [i, target] of (notifications?.targets ?? []).entries()) {
    for (const [field, named] of Object.entries(notificationFiles(target))) {
      const at = `notifications.targets[${i}].${field}`;
      if (field === "roots") {
        const file = (await find(named)) ?? named;
        problems.push(...(await readRoots(file, `${at} (${file})`)).problems);
        continue;
      }
      const { text, label, ...found } = await readSecret(named, at, find);
      problems.push(...found.problems);
      warnings.push(...found.warnings);
      if (text === undefined) continue;
      const is = field === "urlFile" ? isHttpsUrl : isToken;
      if (!is(oneLine(text))) {
        const [what, allowed] =
          field === "urlFile"
            ? ["an https URL", "https://HOST[:PORT]/PATH, without user or fragment"]
            : ["a token", "visible ASCII, without spaces"];
        problems.push(
          problem("files.bad-notification-secret", label, `does not contain ${what}`, { allowed }),
        );
      }
    }
  }
  return { problems, warnings };
}

/** URL and secrets of a target. Never logged, never part of a message. */
export interface NotificationSecrets {
  readonly url: URL;
  readonly token?: string;
  /** PEM. */
  readonly roots?: string;
}

/**
 * Reads the secrets of a target when they are needed, so that a renewed one counts at once.
 *
 * @returns why it cannot be reached, in words without a secret, if so
 */
export async function notificationSecrets(
  target: NotificationTargetConfig,
  find: FindCredential,
): Promise<NotificationSecrets | string> {
  const contents: Record<string, string> = {};
  for (const [field, named] of Object.entries(notificationFiles(target))) {
    const read = await readText((await find(named)) ?? named, field, { secret: true });
    if ("problem" in read) return `${field} (${named}) ${read.problem.message}`;
    contents[field] = field === "roots" ? read.text : oneLine(read.text);
  }
  const { urlFile, tokenFile, roots } = contents;
  const url = target.url ?? urlFile!;
  if (!isHttpsUrl(url)) return "urlFile does not hold an https URL";
  if (tokenFile !== undefined && !isToken(tokenFile)) return "tokenFile does not hold a token";
  return {
    url: new URL(url),
    token: tokenFile,
    roots,
  };
}

/** Editors and `echo` end a line. */
const oneLine = (text: string): string => text.replace(/\r?\n$/, "");

function isHttpsUrl(text: string): boolean {
  if (!/^https:\/\/[!-~]{1,2048}$/.test(text) || !URL.canParse(text)) return false;
  const { username, password, hash } = new URL(text);
  return username === "" && password === "" && hash === "";
}

const isToken = (text: string): boolean => /^[!-~]{1,2048}$/.test(text);
