import { freePorts } from "../../testkit/ports.js";
import { seeded } from "../../testkit/random.js";
import type { RunningProcess } from "../wire/processes.js";
import { ask, type Seen } from "./ask.js";
import { DIFFERENCES } from "./differences.js";
import { type ApplicationFrontEnd, Place, startApplicationFrontEnd } from "./frontEnd.js";
import { generated, type Manual, MANUALS } from "./manuals.js";
import { type Placed, startNginx } from "./nginx.js";
import { SAMPLES } from "./samples.js";
import { StandIn } from "./standIn.js";

/** The vendors' samples for nginx beside our entries: the same requests, and each difference has a name. */

const HOST = "files.example.org";

let place: Place;
let nginx: RunningProcess;
let standIns: StandIn[] = [];
let placed: Placed[];

beforeAll(async () => {
  place = (await Place.make(HOST)).withSeafile();
  standIns = await Promise.all(SAMPLES.map(({ manual }) => StandIn.start(MANUALS[manual])));
  const ports = await freePorts(SAMPLES.length);
  placed = SAMPLES.map((sample, i) => ({ sample, port: ports[i]!, servers: standIns[i]!.ports }));
  nginx = await startNginx(place, HOST, placed);
});
afterAll(async () => {
  await nginx?.stop();
  for (const standIn of standIns) standIn.stop();
  place.remove();
});

describe.each(SAMPLES.map(({ title }, i) => [title, i] as const))("%s", (title, i) => {
  let frontEnd: ApplicationFrontEnd;
  let manual: Manual;
  beforeAll(async () => {
    manual = MANUALS[SAMPLES[i]!.manual];
    frontEnd = await startApplicationFrontEnd(
      place,
      manual.application(place.folder),
      placed[i]!.servers,
      HOST,
    );
  });
  afterAll(() => frontEnd?.stop());

  test(
    "what differs is named, and what is named differs",
    seeded(async (random) => {
      const named = Object.entries(DIFFERENCES).filter(([, { samples }]) =>
        samples.some((one) => title.startsWith(one)),
      );
      const used = new Set<string>();
      const unnamed: unknown[] = [];
      for (const [request] of manual.asks.flatMap((one) => generated(one, random, 6))) {
        const [method, path] = request.split(" ") as [string, string];
        const [theirs, ours] = await Promise.all([
          ask(placed[i]!.port, HOST, method, path),
          ask(frontEnd.port, HOST, method, path),
        ]);
        const [nginxFacts, facts] = [factsOf(theirs, placed[i]!.port), factsOf(ours, frontEnd.port)];
        for (const fact of new Set([...Object.keys(nginxFacts), ...Object.keys(facts)])) {
          const pair = {
            request,
            fact,
            nginx: nginxFacts[fact],
            portico: facts[fact],
          };
          if (pair.nginx === pair.portico) continue;
          const names = named.filter(([, { explains }]) => explains(pair)).map(([name]) => name);
          for (const name of names) used.add(name);
          if (names.length === 0) unnamed.push(pair);
        }
      }
      expect(unnamed).toEqual([]);
      expect(named.map(([name]) => name).filter((name) => !used.has(name))).toEqual([]);
    }),
  );
});

/** What both can have in common. */
function factsOf(
  { status, headers: { location }, server, body }: Seen,
  port: number,
): Record<string, string | undefined> {
  const neutral = (text: string): string => text.replaceAll(`:${port}`, "");
  return {
    status: String(status),
    location: location === undefined ? undefined : neutral(location),
    server: server?.part,
    target: server?.target,
    body: server === undefined && status === 200 ? body : undefined,
    ...Object.fromEntries(
      Object.entries(server?.fields ?? {}).map(([name, value]) => [name, neutral(value)]),
    ),
  };
}
