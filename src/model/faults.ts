import type { CertificateEnd } from "./net/certificateEnd.js";
import { daysText, plural } from "./numberTexts.js";
import type { EngineRow } from "./host/rows.js";

/**
 * The one list of what is wrong with a proxy that runs: when, how bad it is, in which words, and what to do. The status
 * page, `portico status` and notifications show the sentences; alert rules and rows of `portico doctor` are named.
 */

/** What is known of a proxy. A reader gives what it sees; an overview of the status page is all of it but the host's. */
export interface FaultFacts {
  readonly state?: "serving" | "stopping";
  readonly workers?: { readonly silent: number };
  readonly upstreams?: readonly { readonly name: string; readonly servers: readonly ServerFacts[] }[];
  readonly certificates?: readonly CertificateFacts[];
  /** Authorities of clients, and their lists of revoked certificates. */
  readonly clientAuthorities?: readonly ClientAuthorityFacts[];
  /** A sentence for each. */
  readonly pauses?: readonly string[];
  /** Events of the master, the newest first. */
  readonly events?: readonly EventFacts[];
  /** Disks with less room than they should have. */
  readonly fullDisks?: readonly DiskFacts[];
  /** An activation that was rolled back. */
  readonly rolledBack?: { readonly reason: string; readonly fix: string };
  /** Unexpected ends of workers, if there were several lately. */
  readonly workerEnds?: { readonly count: number; readonly minutes: number; readonly last: string };
}

interface ServerFacts {
  readonly url: string;
  readonly state: "unasked" | "up" | "failing" | "out" | "drained" | "down";
  /** Failed requests of the last minute. */
  readonly failures: number;
  readonly why?: string;
  /** For how long it has been in this state, where that is known. */
  readonly minutes?: number;
}

interface CertificateFacts {
  readonly names: readonly string[];
  readonly source: "files" | "acme" | "temporary";
  readonly daysLeft: number;
  readonly end: CertificateEnd;
  /** Why it was not renewed. */
  readonly problem?: { readonly message: string; readonly fix: string };
  /** Address of the host that asks the authority: no client reaches a host without that address. */
  readonly waitsFor?: string;
}

interface ClientAuthorityFacts {
  readonly name: string;
  readonly file: "ca" | "crl";
  readonly daysLeft: number;
  readonly end: CertificateEnd;
}

interface EventFacts {
  readonly level: "info" | "warn" | "error" | "crit";
  readonly message: string;
  readonly problems: readonly {
    readonly path: string;
    readonly message: string;
    readonly fix: string;
    readonly code?: string;
  }[];
}

interface DiskFacts {
  readonly path: string;
  /** Free shares of the space for ordinary users, from 0 to 1. */
  readonly freeBytes: number;
  readonly freeInodes: number;
}

/** A fault that an operator should act on. */
export interface Fault {
  readonly name: string;
  /** What has it; the same fault of the same thing goes on. */
  readonly subject: string;
  readonly level: "warn" | "error";
  /** A sentence without a full stop. */
  readonly text: string;
  readonly fix?: string;
}

/** Why a reader does not have a fault. */
interface Not {
  readonly not: string;
}

/** A kind of fault, and its place in each reader. */
export interface FaultKind {
  readonly name: string;
  /** All of them; where no facts tell, the readers that judge by themselves are named. */
  readonly find: (facts: FaultFacts) => readonly Omit<Fault, "name">[];
  readonly page: true | Not;
  /** Kind of the notice: notices of one kind that are not seen again are resolved. */
  readonly notification: string | Not;
  /** Rule of `monitoring/alerts.yml`. */
  readonly alert: string | Not;
  readonly doctor: EngineRow | Not;
}

const UNSEEN = { not: "no overview has this fact" };
const UNCOUNTED = { not: "no metric counts it" };

export const FAULTS: readonly FaultKind[] = [
  {
    name: "upstream-server",
    find: ({ upstreams = [] }) => upstreams.flatMap(badServers),
    ...{ page: true, notification: "upstream", alert: "PorticoUpstreamDown", doctor: "upstreams" },
  },
  {
    name: "certificate-ends",
    find: certificates(({ end }) => end !== "later", certificateEnds),
    page: true,
    notification: "certificate",
    alert: "PorticoCertificateEnds",
    doctor: "acme-certificates",
  },
  {
    name: "certificate-not-renewed",
    find: certificates(({ end, problem }) => end === "later" && problem !== undefined, certificateEnds),
    page: true,
    notification: { not: "the engine tries again, and there is time until certificate-ends" },
    alert: UNCOUNTED,
    doctor: "acme-certificates",
  },
  {
    name: "certificate-not-issued",
    find: certificates(
      ({ problem }) => problem !== undefined,
      (of, { problem }) => ({
        level: "error",
        text: `${of} was not issued: ${problem!.message}; browsers get a temporary one, which they do not trust`,
        fix: problem!.fix,
      }),
      true,
    ),
    ...{ page: true, notification: "certificate", alert: UNCOUNTED, doctor: "acme-certificates" },
  },
  {
    name: "certificate-temporary",
    find: certificates(
      ({ problem, waitsFor }) => problem === undefined && waitsFor === undefined,
      (of) => ({ level: "warn", text: `${of} is a temporary one, which browsers do not trust` }),
      true,
    ),
    page: true,
    notification: { not: "the authority has been asked, and has not refused" },
    alert: UNCOUNTED,
    doctor: "acme-certificates",
  },
  {
    name: "client-authority-ends",
    find: ({ clientAuthorities = [] }) =>
      clientAuthorities.filter(({ end }) => end !== "later").map(authorityEnds),
    ...{ page: true, notification: "certificate", alert: UNCOUNTED, doctor: "client-certificates" },
  },
  {
    name: "change-refused",
    find: refusedChange,
    ...{ page: true, notification: "reload", alert: "PorticoReloadRefused", doctor: "config" },
  },
  {
    name: "stopping",
    find: ({ state }) =>
      state === "stopping" ? [warn("Portico finishes the requests in progress, and stops")] : [],
    page: true,
    notification: { not: "an operator stops it" },
    alert: { not: "an operator stops it; PorticoAbsent fires afterwards" },
    doctor: "proxy",
  },
  {
    name: "pause",
    find: ({ pauses = [] }) => pauses.map((text) => warn(text, text)),
    page: true,
    notification: { not: "an operator's command began it, and says so" },
    alert: UNCOUNTED,
    doctor: "pauses",
  },
  {
    name: "silent-worker",
    find: ({ workers: { silent } = { silent: 0 } }) =>
      silent > 0 ? [warn(`${plural(silent, "worker")} did not respond`)] : [],
    page: true,
    notification: { not: "the master replaces it after 30 s; worker-ends tells of several" },
    alert: { not: "the master replaces it after 30 s; PorticoWorkersRestart counts that" },
    doctor: "proxy",
  },
  {
    name: "worker-ends",
    find: ({ workerEnds }) => (workerEnds === undefined ? [] : [repeatedEnds(workerEnds)]),
    page: UNSEEN,
    notification: "worker",
    alert: "PorticoWorkersRestart",
    doctor: "memory",
  },
  {
    name: "disk-full",
    find: ({ fullDisks = [] }) => fullDisks.map(fullDisk),
    ...{ page: UNSEEN, notification: "disk", alert: UNCOUNTED, doctor: "space" },
  },
  {
    name: "activation-rolled-back",
    find: ({ rolledBack }) => {
      if (rolledBack === undefined) return [];
      const { reason, fix } = rolledBack;
      const text = `An activation was rolled back, and the host is as it was before: ${reason}`;
      return [{ subject: reason.slice(0, 200), level: "error", text, fix }];
    },
    page: { not: "it is over: the state before serves" },
    notification: "activation",
    alert: UNCOUNTED,
    doctor: "activation",
  },
  {
    name: "log-lines-lost",
    find: () => [],
    page: UNSEEN,
    notification: { not: "a full disk is told of before" },
    alert: "PorticoLogLinesLost",
    doctor: "logs",
  },
  {
    name: "server-errors",
    find: () => [],
    page: { not: "it has the failed requests of each upstream" },
    notification: { not: "a share of requests needs a history, which Prometheus has" },
    alert: "PorticoServerErrors",
    doctor: { not: "it asks for each expected response itself" },
  },
  {
    name: "absent",
    find: () => [],
    page: { not: "a proxy that does not run has no page" },
    notification: { not: "it can send none; a target `healthcheck` notices that its requests stop" },
    alert: "PorticoAbsent",
    doctor: "proxy",
  },
];

/** Current faults, the worst first; one of `among` only, if that is given. */
export function faultsOf(
  facts: FaultFacts,
  among: (kind: FaultKind) => boolean = ({ page }) => page === true,
): readonly Fault[] {
  const all = FAULTS.filter(among).flatMap(({ name, find }) => find(facts).map((one) => ({ name, ...one })));
  return [...all.filter(({ level }) => level === "error"), ...all.filter(({ level }) => level === "warn")];
}

const warn = (text: string, subject = ""): Omit<Fault, "name"> => ({ subject, level: "warn", text });

/** The state where there is no fault, as one sentence without a full stop. */
export function wellText({ upstreams = [] }: FaultFacts): string {
  const unasked = upstreams.flatMap(({ servers }) =>
    servers.filter(({ state }) => state === "unasked"),
  ).length;
  if (unasked === 0) return "All is well";
  return `No trouble is known; no request has reached ${plural(unasked, "upstream server")} so far`;
}

/** A state for people. */
export const stateWords = ({ state }: Pick<ServerFacts, "state">): string =>
  state === "unasked" ? "not asked yet" : state;

function badServers({ name, servers }: NonNullable<FaultFacts["upstreams"]>[number]): Omit<Fault, "name">[] {
  const serves = ({ state }: Pick<ServerFacts, "state">): boolean => state === "up" || state === "unasked";
  const level = servers.some(serves) ? "warn" : "error";
  // A command drains a server; a fault is that none is left.
  const isLastDrained = servers.every(({ state }) => state === "drained");
  const bad = servers.filter((one) =>
    serves(one) ? one.failures > 0 : one.state !== "drained" || isLastDrained,
  );
  return bad.map(({ url, state, why, failures, minutes }) => {
    const failing = servers.length > 1 ? "requests failed at all servers" : "the last request to it failed";
    const failed = failures > 0 ? `${plural(failures, "request")} failed in the last minute` : failing;
    const is = minutes === undefined ? `is ${state}` : `has been ${state} for ${minutes} min`;
    const what = state === "failing" || serves({ state }) ? `– ${failed}` : is;
    const because = why === undefined ? "" : `: ${why}`;
    return {
      subject: `${name} ${url}`,
      level,
      text: `Upstream ${name}: its server ${url} ${what}${because}`,
      fix: "Look at the application's own log, and whether it listens there; `portico upstreams` shows all servers.",
    };
  });
}

type CertificateText = (of: string, certificate: CertificateFacts) => Omit<Fault, "name" | "subject">;

function certificates(
  has: (certificate: CertificateFacts) => boolean,
  say: CertificateText,
  temporary = false,
): FaultKind["find"] {
  return ({ certificates: all = [] }) =>
    all
      .filter((one) => (one.source === "temporary") === temporary && has(one))
      .map((one) => {
        const { names } = one;
        const of = `The certificate of ${names[0]}${names.length > 1 ? ` and ${names.length - 1} more` : ""}`;
        return { subject: names.join(",").slice(0, 200), ...say(of, one) };
      });
}

/** The end of a certificate that serves: a temporary certificate is replaced before its own end. */
function certificateEnds(
  of: string,
  { daysLeft, end, problem, source }: CertificateFacts,
): ReturnType<CertificateText> {
  const level = end === "ended" || end === "last" ? "error" : "warn";
  const when = end === "ended" ? `ended ${daysText(daysLeft)}` : `ends ${daysText(daysLeft)}`;
  if (problem !== undefined)
    return { level, text: `${of} was not renewed: ${problem.message}; it ${when}`, fix: problem.fix };
  return { level, text: `${of} ${when}`, fix: source === "files" ? BY_FILES : BY_ACME };
}

/** Until someone acts, none of its clients comes in after the end. */
function authorityEnds({ name, file, daysLeft, end }: ClientAuthorityFacts): Omit<Fault, "name"> {
  const what =
    file === "ca" ? `The authority of clients ${name}` : `The list of revoked certificates of ${name}`;
  const when =
    end === "ended"
      ? `ended ${daysText(daysLeft)}: none of its clients comes in`
      : `ends ${daysText(daysLeft)}`;
  const level = end === "ended" || end === "last" ? "error" : "warn";
  return { subject: `${file} ${name}`.slice(0, 200), level, text: `${what} ${when}`, fix: BY_FILES };
}

const BY_FILES = "Renew its files on the host; Portico then loads them without a reload.";
const BY_ACME = "See `portico certificates`; `portico certificates renew` asks the authority again.";

/** The last reload or upgrade, if it was refused. */
function refusedChange({ events = [] }: FaultFacts): Omit<Fault, "name">[] {
  const last = events.find(({ message }) =>
    /^(?:configuration reloaded|reload refused|upgrade refused)/.test(message),
  );
  if (last === undefined || last.level === "info") return [];
  const [first] = last.problems;
  const what = last.message.charAt(0).toUpperCase() + last.message.slice(1);
  const code = first?.code === undefined ? "" : ` [${first.code}]`;
  const text = first === undefined ? what : `${what}: ${first.path} ${first.message}${code}`;
  return [{ subject: "refused", level: "error", text, fix: first?.fix ?? "Read the error log." }];
}

const repeatedEnds = ({
  count,
  minutes,
  last,
}: NonNullable<FaultFacts["workerEnds"]>): Omit<Fault, "name"> => ({
  subject: "restarts",
  level: "error",
  text: `Workers end repeatedly: ${count} in the last ${minutes} minutes; the last one ${last}`,
  fix: "Read the error log and `journalctl -u portico`; the requests of a worker that ends are lost.",
});

function fullDisk({ path, freeBytes, freeInodes }: DiskFacts): Omit<Fault, "name"> {
  const of = freeBytes <= freeInodes ? "its bytes" : "its inodes";
  const percent = (Math.min(freeBytes, freeInodes) * 100).toFixed(1);
  return {
    subject: path,
    level: "error",
    text: `The disk of ${path} is nearly full: ${percent} % of ${of} are free`,
    fix: "Free space: remove old logs or caches, or use a larger disk. On a full disk, log lines and new certificates are lost.",
  };
}
