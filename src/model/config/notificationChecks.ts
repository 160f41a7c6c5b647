import { type Problem, problem } from "../problem.js";
import type { ProxyConfig } from "./config.js";

/** Rules of notifications that span fields. */
export function notificationProblems({ notifications }: ProxyConfig): Problem[] {
  const { targets = [] } = notifications ?? {};
  const names = targets.map(({ name }) => name);
  return targets.flatMap(({ name, url, urlFile }, i) => {
    const at = `notifications.targets[${i}]`;
    const first = names.indexOf(name);
    const twice =
      first === i
        ? []
        : [
            problem("config.duplicate-name", `${at}.name`, `is already the name of targets[${first}]`, {
              received: name,
            }),
          ];
    if ((url === undefined) !== (urlFile === undefined)) return twice;
    const message = url === undefined ? "has no URL" : "has two URLs";
    return [
      ...twice,
      problem("config.notification-url", at, message, { allowed: "either `url` or `urlFile`" }),
    ];
  });
}
