import { setTimeout as sleep } from "node:timers/promises";
import { Random } from "../../../testkit/random.js";
import { nameOf } from "../case.js";
import { connectionsOf } from "../clients.js";
import type { Pool } from "../pool.js";
import { Running } from "../running.js";
import { begin, type Happening } from "./events.js";
import { fileRequest } from "./files.js";
import { judge, type Played, Sessions } from "./laws.js";
import { exchangeOf, type Scene, SCENE_MS, type Session } from "./scene.js";
import { Stage } from "./stage.js";
import { visitorFields } from "./closed.js";

/** What became of a scene. */
export interface Outcome {
  readonly faults: readonly string[];
  readonly exchanges: number;
  readonly bytes: number;
  /** Responses by status. */
  readonly statuses: Readonly<Record<string, number>>;
}

export async function play(scene: Scene, pool: Pool): Promise<Outcome> {
  const stage = await Stage.start(scene, pool);
  const all: Played[] = [];
  const faults: string[] = [];
  try {
    const { happenings, over } = begin(stage);
    const until = performance.now() + SCENE_MS;
    const sessions = scene.sessions.map((session, s) => playSession(stage, session, s, pool, until));
    faults.push(...(await over));
    for (const played of await Promise.all(sessions)) all.push(...played);
    faults.push(...(await stage.atRest()));
    faults.push(...judgeAll(all, happenings, scene));
  } finally {
    const { access, odd } = await stage.stop();
    faults.push(...odd.map((line) => `said: ${line}`), ...lineFaults(access, all));
  }
  return { faults, exchanges: all.length, ...figures(all) };
}

async function playSession(
  stage: Stage,
  session: Session,
  s: number,
  pool: Pool,
  until: number,
): Promise<Played[]> {
  const chance = new Random(session.seed);
  const { client, windowBytes, isBrowser, keptOutBy } = session;
  const recordBytes = 16_384;
  const connections = connectionsOf(
    { client, together: false, recordBytes, windowBytes, exchanges: [] },
    stage.frontEnd,
  );
  const { features, parts } = stage.scene;
  const [sticky, encoded] = [parts.upstream.sticky, features.includes("precompressed")];
  let cookie = sticky?.applicationCookie === undefined ? undefined : `s${session.seed}`;
  const all: Played[] = [];
  for (let e = 0; performance.now() < until; e++) {
    const drawn = exchangeOf(chance, client);
    const file = drawn.responder === "file" ? fileRequest(chance, drawn, encoded) : undefined;
    const id = `${stage.scene.number}.${s}.${e}`;
    const running = new Running(id, file?.exchange ?? drawn, pool, recordBytes);
    const path = file === undefined ? `/web/${id}` : `/file/${file.name}?${id}`;
    stage.running.set(id, running);
    const cookies =
      cookie === undefined ? [] : ["other=1", `${sticky!.cookie ?? sticky!.applicationCookie}=${cookie}`];
    running.fields = {
      accept: isBrowser ? "text/html,*/*;q=0.8" : "*/*",
      ...(file?.accepted === undefined ? {} : { "accept-encoding": file.accepted }),
      ...visitorFields(features, session, cookies),
    };
    running.showsUrl = true;
    const begun = performance.now();
    const work = connections.play(running, path);
    const late = sleep(PATIENCE_MS, "late" as const, { ref: false });
    if ((await Promise.race([work, late])) === "late")
      running.faults.push(`not over after ${PATIENCE_MS} ms`);
    const played = { running, session, path, file, cookie, begun, over: performance.now() };
    all.push(played);
    cookie = Sessions.cookieOf(played);
    // A refused client would ask again and again meanwhile.
    const isRefused = running.head?.status === 503 || keptOutBy !== undefined;
    await sleep(isRefused ? 20 : chance.upTo(5));
  }
  await connections.close();
  return all;
}

const PATIENCE_MS = 20_000;

function judgeAll(all: readonly Played[], happenings: readonly Happening[], scene: Scene): string[] {
  const sessions = new Sessions(scene);
  return all.flatMap((played) => {
    const { exchange, id } = played.running;
    const faults = [...judge(played, happenings, scene), ...sessions.judge(played, happenings)];
    const ms = `${Math.round(played.over - played.begun)} ms`;
    return faults.map((fault) => `${nameOf(exchange)} (${id}, ${ms}): ${fault}`);
  });
}

/** Each request has one line in the access log, with its status (decisions 7.1). */
function lineFaults(access: string, all: readonly Played[]): string[] {
  const statuses = new Map<string, string[]>();
  for (const [, path, status] of access.matchAll(/"\S+ (\S+) HTTP\/[\d.]+" (\d+)/g))
    statuses.set(path!, [...(statuses.get(path!) ?? []), status!]);
  return all.flatMap(({ path, running: { head, id, abandoned } }) => {
    const lines = statuses.get(path) ?? [];
    // Who got no response may never have reached the proxy.
    if (head === undefined && abandoned) return [];
    const asSeen = lines.length === 1 && (head === undefined || lines[0] === String(head.status));
    return asSeen ? [] : [`request ${id} with status ${head?.status} has in the log: ${lines.join(", ")}`];
  });
}

function figures(all: readonly Played[]): Pick<Outcome, "bytes" | "statuses"> {
  const statuses: Record<string, number> = {};
  let bytes = 0;
  for (const { running } of all) {
    const status = String(running.head?.status ?? "none");
    statuses[status] = (statuses[status] ?? 0) + 1;
    bytes += running.up.bytes + running.down.bytes;
  }
  return { bytes, statuses };
}
