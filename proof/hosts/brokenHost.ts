import type { DiagnosisRow } from "../../src/host/diagnosis/verdict.js";
import { BREAKAGES, patternOf, SERVICES } from "./breakages.js";
import { eventually } from "../../testkit/waiting.js";
import { FileSyncHost, PORTICO } from "./fileSyncHost.js";

/** A host with a whole front end that is broken in one way after the other, and what `portico doctor` says of it. */

export const DOCTOR = `${PORTICO} doctor --timeout 8`;

export interface Diagnosis {
  readonly code: number;
  readonly rows: readonly DiagnosisRow[];
}

export async function diagnosis(site: FileSyncHost, options = ""): Promise<Diagnosis> {
  const { code, stdout, stderr } = await site.host.run(`${DOCTOR} --json ${options}`);
  if (stderr !== "") throw new Error(stderr);
  return { code, rows: (JSON.parse(stdout) as { rows: DiagnosisRow[] }).rows };
}

export const failed = ({ rows }: Diagnosis): string[] =>
  rows.flatMap(({ id, status }) => (status === "failed" ? [id] : []));

/** Rows without an answer that were asked. */
export const notKnown = ({ rows }: Diagnosis): string[] =>
  rows.flatMap(({ id, status, notAsked }) => (status === "unknown" && notAsked !== true ? [id] : []));

/** What clients outside get of everything that is served. */
export async function notServed(site: FileSyncHost): Promise<string[]> {
  const ask = Object.entries(SERVICES).map(([name, service]) => {
    const host = "host" in service ? `-H 'Host: ${service.host}'` : "";
    const url = service.url.replace("ADDRESS", site.host.address);
    return `curl -sk -o /dev/null -m 4 -w '${name}=%{http_code}\\n' ${host} ${url} &`;
  });
  const outside = await site.host.outside();
  const { stdout } = await outside.run(`${ask.join("\n")} wait`);
  const isServed = (name: string, status: number): boolean => stdout.includes(`${name}=${status}\n`);
  return Object.entries(SERVICES).flatMap(([name, { status }]) => (isServed(name, status) ? [] : [name]));
}

const WAIT = { ms: 30_000, everyMs: 500 };

/** A host of this name, broken in all ways about these things. */
export function breakHost(name: string, ...about: readonly (keyof typeof BREAKAGES)[]): void {
  let site: FileSyncHost;
  beforeAll(async () => {
    site = await FileSyncHost.boot(name);
  }, 600_000);
  afterAll(() => site?.remove());

  for (const one of about) breakInTurn(one, () => site);

  test("nothing is left broken, and the secret key was never shown", async () => {
    expect(failed(await diagnosis(site))).toEqual([]);
    const { stdout } = await site.host.run(`${DOCTOR} --json; ${DOCTOR}`);
    expect(stdout).not.toContain("not to be shown");
  });
}

/**
 * A breakage after which another row than its own fails was not healed, or not by the one before: each is followed by a
 * diagnosis, and each finds the host healed.
 */
function breakInTurn(about: keyof typeof BREAKAGES, site: () => FileSyncHost): void {
  const isHealed = async (): Promise<boolean> => failed(await diagnosis(site())).length === 0;

  describe(about, () => {
    test.each(BREAKAGES[about]!)(
      "$name",
      async ({ breaks, tries, rows, unknown, message, down = [], heals, thenAgain }) => {
        await site().host.must(breaks);
        if (tries !== undefined) {
          const { code, stdout, stderr } = await site().host.run(tries.command, { timeoutSeconds: 120 });
          expect({ code: code === 0, said: stdout + stderr }).toEqual({
            code: false,
            said: expect.stringMatching(patternOf(tries.message)),
          });
        }
        // How long the host takes for this on a busy machine is no question here.
        if (heals === "itself" && rows.length === 0) await eventually(isHealed, "for the host to heal", WAIT);
        const broken = await diagnosis(site());
        // A front end on both families has some rows twice.
        const ids = new Set(failed(broken).map((id) => id.replace(" on IPv6", "")));
        expect({ rows: [...ids].sort(), down: await notServed(site()) }).toEqual({
          rows: [...rows].sort(),
          down,
        });
        expect(notKnown(broken)).toEqual(expect.arrayContaining([...(unknown ?? [])]));
        expect(broken.code).toBe(rows.length > 0 ? 1 : unknown === undefined ? 0 : 3);
        if (rows.length > 0) {
          const { cause, evidence, fix } = broken.rows.find(({ id }) => id === rows[0])!;
          expect([cause, ...evidence, fix].join("\n")).toMatch(patternOf(message!));
          expect(fix).toBeTruthy();
        }
        if (heals !== "itself" && heals !== "again") await site().host.must(heals);
        if (heals === "again" || thenAgain === true)
          await site().host.must(`${PORTICO} activate --again 2>&1`, { timeoutSeconds: 120 });
      },
    );

    test("and afterwards everything is in order", async () => {
      expect([failed(await diagnosis(site())), await notServed(site())]).toEqual([[], []]);
    });
  });
}
