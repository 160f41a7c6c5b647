import { resolve } from "../../src/testing/index.js";
import { seeded } from "../../testkit/random.js";
import { ask, type Seen } from "./ask.js";
import { type ApplicationFrontEnd, Place, startApplicationFrontEnd } from "./frontEnd.js";
import { generated, type Manual, MANUALS } from "./manuals.js";
import { StandIn } from "./standIn.js";

/** Each entry in front of stand-ins that know the paths of the vendor's manual and no other. */

const HOST = "files.example.org";

let place: Place;
beforeAll(async () => {
  place = (await Place.make(HOST)).withSeafile();
});
afterAll(() => place.remove());

describe.each(Object.values(MANUALS).map((manual: Manual) => [manual.title, manual] as const))(
  "%s",
  (_title, manual) => {
    let standIn: StandIn;
    let frontEnd: ApplicationFrontEnd;
    beforeAll(async () => {
      standIn = await StandIn.start(manual);
      frontEnd = await startApplicationFrontEnd(place, manual.application(place.folder), standIn.ports, HOST);
    });
    afterAll(async () => {
      await frontEnd?.stop();
      standIn?.stop();
    });

    test(
      "clients reach every server by the paths of the manual",
      seeded(async (random) => {
        for (const one of manual.asks)
          for (const [request, leads, usual = 200] of generated(one, random)) {
            const [method, path] = request.split(" ") as [string, string];
            const seen = await ask(frontEnd.port, HOST, method, path);
            const status = method === "WS" ? 101 : leads.startsWith("redirect ") ? 301 : usual;
            expect([request, seen.status, whereTo(seen)]).toEqual([request, status, leads]);
            expect([request, resolved(frontEnd, method, path)]).toEqual([request, leads]);
          }
      }),
    );

    test("what shows that a part runs is a request of the manual", async () => {
      for (const [part, server] of Object.entries(manual.application(place.folder).definition.parts)) {
        const { path, status } = server?.liveness ?? {};
        if (path !== undefined)
          expect([part, (await ask(frontEnd.port, HOST, "GET", path)).status]).toEqual([part, status]);
      }
    });
  },
);

/** The same, as unit tests of a stack see it. */
function resolved({ stack, port }: ApplicationFrontEnd, method: string, path: string): string {
  const request = {
    url: `https://${HOST}:${port}${path}`,
    method: method === "WS" ? "GET" : method,
    // As the request on the wire, which a closed path lets in.
    clientAddress: "127.0.0.1",
  };
  const found = resolve(stack.proxy, request);
  if (found.kind === "proxy") return `${found.upstream} ${found.requestLine.split(" ")[1]}`;
  if (found.kind === "staticFile") return `files ${found.file.replace(place.folder, "")}`;
  return found.kind === "redirect" ? `redirect ${new URL(found.location).pathname}` : found.kind;
}

function whereTo({ server, headers: { location }, body }: Seen): string {
  if (server !== undefined) return `${server.part} ${server.target}`;
  return location === undefined ? `files ${body}` : `redirect ${new URL(location).pathname}`;
}
