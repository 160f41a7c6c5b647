import { mayRespond, type Overview, type OverviewServer } from "./overview.js";
import { daysText, plural } from "./numberTexts.js";

/** A problem that an operator should act on. */
export interface Trouble {
  readonly level: "warn" | "error";
  readonly text: string;
  readonly fix?: string;
}

/** Current problems, the worst first; the page and `portico status` show them first. */
export function troublesOf(overview: Overview): readonly Trouble[] {
  const all = [...upstreams(overview), ...certificates(overview), ...others(overview)];
  return [...all.filter(({ level }) => level === "error"), ...all.filter(({ level }) => level === "warn")];
}

function upstreams({ upstreams: all }: Overview): readonly Trouble[] {
  return all.flatMap(({ name, servers }) => {
    const away = servers.filter((one) => (mayRespond(one) ? one.failures > 0 : one.state !== "drained"));
    const left = servers.some(mayRespond);
    return away.map(({ url, state, why, failures }): Trouble => {
      const failing = servers.length > 1 ? "requests failed at all servers" : "the last request to it failed";
      const failed = failures > 0 ? `${plural(failures, "request")} failed in the last minute` : failing;
      const isFailing = state !== "out" && state !== "down";
      const what = isFailing ? failed : `is ${state}`;
      const because = why === undefined ? "" : `: ${why}`;
      const text = `Upstream ${name}: ${servers.length === 1 ? url : `its server ${url}`} ${isFailing ? `– ${what}` : what}${because}`;
      return {
        level: left ? "warn" : "error",
        text,
        fix: "Look at the application's own log, and whether it listens there.",
      };
    });
  });
}

/** The state where there is no trouble, as one sentence without a full stop. */
export function wellText({ upstreams: all }: Overview): string {
  const unasked = all.flatMap(({ servers }) => servers.filter(({ state }) => state === "unasked")).length;
  if (unasked === 0) return "All is well";
  return `No trouble is known; no request has reached ${plural(unasked, "upstream server")} so far`;
}

/** A state for people. */
export const stateWords = ({ state }: OverviewServer): string =>
  state === "unasked" ? "not asked yet" : state;

function certificates({ certificates: all }: Overview): readonly Trouble[] {
  return all.flatMap(({ names, daysLeft, end: nears, source, problem }): Trouble[] => {
    const of = `The certificate of ${names[0]}${names.length > 1 ? ` and ${names.length - 1} more` : ""}`;
    const end = daysLeft < 0 ? `ended ${daysText(daysLeft)}` : `ends ${daysText(daysLeft)}`;
    const fix = problem?.fix;
    const level = nears === "ended" || nears === "last" ? "error" : "warn";
    if (problem !== undefined)
      return [{ level, text: `${of} was not renewed: ${problem.message}; it ${end}`, fix: fix! }];
    if (source === "temporary")
      return [{ level: "warn", text: `${of} is a temporary one, which browsers do not trust` }];
    if (nears === "later") return [];
    return [{ level, text: `${of} ${end}`, fix: source === "files" ? BY_FILES : BY_ACME }];
  });
}

const BY_FILES = "Put a new one in its place, and reload.";
const BY_ACME = "`portico certificates renew` asks the authority again.";

function others({ state, pauses, workers, events }: Overview): readonly Trouble[] {
  const last = events.find(({ message }) =>
    /^(?:configuration reloaded|reload refused|upgrade refused)/.test(message),
  );
  return [
    ...(state === "stopping"
      ? [{ level: "warn", text: "Portico finishes the requests in progress, and stops" } as const]
      : []),
    ...pauses.map((text) => ({ level: "warn", text }) as const),
    ...(workers.silent > 0
      ? [{ level: "warn", text: `${plural(workers.silent, "worker")} did not respond` } as const]
      : []),
    ...(last === undefined || last.level === "info"
      ? []
      : [
          {
            level: "error",
            text: `${sentence(last.message)}${last.problems[0] === undefined ? "" : `: ${last.problems[0].path} ${last.problems[0].message}`}`,
            ...(last.problems[0] === undefined ? {} : { fix: last.problems[0].fix }),
          } as const,
        ]),
  ];
}

const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
