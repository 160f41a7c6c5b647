import type { Difference } from "../case.js";
import type { Case } from "../deviations.js";
import { MODE_OF } from "../case.js";
import { compareBy } from "../compare.js";
import { findNginx, startNginx } from "../nginxServer.js";
import { freePorts } from "../../kit/ports.js";
import { installPortico, startPortico } from "../porticoServer.js";
import type { RunningProcess } from "../processes.js";
import { observe, startSubject, stopSubject, type Subject } from "../run.js";
import { createSite, type Mode, type Ports } from "../site.js";
import { type GeneratedRuleName, rulesFor } from "./deviations.js";
import { answerText, type GeneratedCase, requestOf } from "./generate.js";

/** Both proxies in both modes, each with upstreams of its own. */
export interface Proxies {
  compare(generated: GeneratedCase): Promise<Outcome>;
  stop(): Promise<void>;
}

/** What came of one request. */
export interface Outcome {
  readonly unexplained: readonly Difference[];
  readonly used: ReadonlySet<GeneratedRuleName>;
}

const MODES: readonly Mode[] = ["plain", "tls"];

export async function startProxies(): Promise<Proxies> {
  const nginx = findNginx();
  if (nginx === undefined) throw new Error("nginx is not installed (Debian: apt install nginx-light)");
  const site = await createSite();
  const running: Subject[] = [];
  const stop = async (): Promise<void> => {
    const stopped = await Promise.allSettled(running.map(stopSubject));
    site.remove();
    for (const outcome of stopped) if (outcome.status === "rejected") throw outcome.reason;
  };
  const subjects = {} as Record<Mode, { nginx: Subject; portico: Subject }>;
  try {
    const bundle = await installPortico(site);
    const start = async (run: (ports: Ports) => Promise<RunningProcess>): Promise<Subject> => {
      const [http, https, web, files, dav] = (await freePorts(5)) as [number, number, number, number, number];
      const subject = await startSubject({ http, https, web, files, dav }, run);
      running.push(subject);
      return subject;
    };
    for (const mode of MODES) {
      subjects[mode] = {
        nginx: await start((ports) => startNginx(nginx, mode, site, ports)),
        portico: await start((ports) => startPortico(bundle, mode, site, ports)),
      };
    }
  } catch (error) {
    await stop().catch(() => undefined);
    throw error;
  }
  return { compare: (generated) => compareOn(subjects[MODE_OF[generated.channel]], generated), stop };
}

/** Long enough for any answer on this machine, short enough for the cases that get none. */
const PATIENCE_MS = 2_000;

async function compareOn(
  subjects: { readonly nginx: Subject; readonly portico: Subject },
  generated: GeneratedCase,
): Promise<Outcome> {
  const { channel, answer } = generated;
  const row: Case = {
    name: "generated",
    send: requestOf(generated),
    answer: {
      pieces: [answerText(generated)],
      ...(answer.framing === "close" ? { then: "close" } : {}),
    },
    status: 0,
    patienceMs: PATIENCE_MS,
  };
  const [theirs, ours] = await Promise.all([
    observe(row, channel, subjects.nginx),
    observe(row, channel, subjects.portico),
  ]);
  return compareBy({ row, channel, nginx: theirs.facts, portico: ours.facts }, rulesFor(generated));
}
