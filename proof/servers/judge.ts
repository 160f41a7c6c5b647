import type { Done, Kind } from "./load.js";

/** What was done to a server that a request which is not repeated does not survive. */
export interface Fault {
  readonly server: number;
  readonly kind: "killed" | "hung";
  readonly from: number;
  readonly to: number;
}

export interface Report {
  readonly name: string;
  readonly kinds: readonly KindReport[];
  /** Requests that failed, and that the rules allow to succeed. */
  readonly wrong: readonly string[];
}

interface KindReport {
  readonly kind: Kind;
  readonly requests: number;
  /** Failed as the rules say: a server had them when it was killed or hung, and they must not be sent twice. */
  readonly lost: number;
  readonly failed: number;
  /** In milliseconds. */
  readonly p99: number;
  readonly longest: number;
}

const KINDS: readonly Kind[] = ["read", "post", "upload"];

/**
 * A read may be repeated, so it never fails. Anything else may, if a server that began with it, or may have, was killed or
 * hung while it lasted: it must not be sent again. What servers that were not touched began with must succeed.
 *
 * @param begunAt which servers began with each request
 */
export function reportOf(
  name: string,
  done: readonly Done[],
  faults: readonly Fault[],
  begunAt: ReadonlyMap<number, ReadonlySet<number>>,
): Report {
  const isLost = ({ id, kind, from, to }: Done): boolean =>
    kind !== "read" &&
    faults.some((fault) => {
      const at = begunAt.get(id);
      return from <= fault.to && to >= fault.from && (at === undefined || at.has(fault.server));
    });
  const failures = done.filter(({ wrong }) => wrong !== undefined);
  const wrong = failures
    .filter((one) => !isLost(one))
    .map(({ id, kind, from, wrong }) => {
      const last = faults.findLast((fault) => fault.from <= from);
      const after = last && `${Math.round(from - last.from)} ms after server ${last.server} was ${last.kind}`;
      const at = [...(begunAt.get(id) ?? [])].map((one) => `server ${one}`);
      return `${name}: ${kind} ${id}, begun by ${at.join(", ") || "none"}, ${after}: ${wrong}`;
    });
  const kinds = KINDS.map((kind): KindReport => {
    const own = done.filter((one) => one.kind === kind);
    const failed = own.filter((one) => one.wrong !== undefined);
    const lost = failed.filter(isLost).length;
    const times = own.map(({ from, to }) => to - from).sort((a, b) => a - b);
    const p99 = times[Math.floor(times.length * 0.99)] ?? 0;
    return {
      kind,
      requests: own.length,
      lost,
      failed: failed.length - lost,
      p99,
      longest: times.at(-1) ?? 0,
    };
  });
  return { name, kinds, wrong };
}

/** A line for each kind. */
export const reportText = ({ name, kinds }: Report): string =>
  kinds
    .map(({ kind, requests, lost, failed, p99, longest }) => {
      const times = `p99 ${p99.toFixed(0)} ms, longest ${longest.toFixed(0)} ms`;
      return `${name}: ${requests} ${kind}s: ${failed} failed that may succeed, ${lost} lost with a server; ${times}`;
    })
    .join("\n");
