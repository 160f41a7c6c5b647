import { Random } from "../../testkit/random.js";
import { type Diagnosis, failed, notKnown, notServed } from "./brokenHost.js";
import type { DiagnosisRow } from "../../src/host/diagnosis/verdict.js";
import { BY_HAND, caseOf, FILES, NOT_KNOWN, THINGS_BROKEN, type ThingBroken } from "./deployedThings.js";
import { FileSyncHost } from "./fileSyncHost.js";

/**
 * Things of a deployment that are broken in every way there is: `portico doctor` has to name the thing in its first row
 * that fails, and the fix that it prints is carried out as it is printed, after what only a person can do (`BY_HAND`). The
 * seed draws some of the cases;
 * `PORTICO_BREAKAGES=all`, or a number, or an expression that their names match, takes others.
 */

/** This program stays if the installed one is broken. */
const OWN = "/root/node /root/portico.mjs";
const DRAWN = 16;

function drawn(): readonly ThingBroken[] {
  const wanted = process.env["PORTICO_BREAKAGES"] ?? String(DRAWN);
  if (wanted === "all") return THINGS_BROKEN;
  if (!/^\d+$/.test(wanted)) return THINGS_BROKEN.filter((one) => new RegExp(wanted).test(caseOf(one)));
  const left = [...THINGS_BROKEN];
  const random = new Random();
  return Array.from({ length: Number(wanted) }, () => left.splice(random.pick(left.length), 1)[0]!);
}

let site: FileSyncHost;
const figures = { named: 0, healed: 0, "healed by hand": 0, unknown: 0 };
beforeAll(async () => {
  site = await FileSyncHost.boot("breakages-drawn");
}, 600_000);
afterAll(async () => {
  console.log(`of ${drawn().length} breakages drawn from ${THINGS_BROKEN.length}:`, JSON.stringify(figures));
  await site?.remove();
});

async function look(): Promise<Diagnosis> {
  const { code, stdout, stderr } = await site.host.run(`${OWN} doctor --timeout 4 --json`);
  if (stderr !== "") throw new Error(stderr);
  return { code, rows: (JSON.parse(stdout) as { rows: DiagnosisRow[] }).rows };
}

/** The commands of a fix, without what is said to a person. */
function commandsOf({ fix = "" }: DiagnosisRow): string {
  return fix
    .replaceAll(/Move (\S+) away, then /g, "mv $1 /root/away.$RANDOM; ")
    .replaceAll(/; (?:if that fails|to make it last)[^;]*/g, "")
    .replaceAll(/ \([^()]*\)/g, "")
    .replaceAll(/, then /g, "; ");
}

const firstFailed = ({ rows }: Diagnosis): DiagnosisRow | undefined =>
  rows.find(({ status }) => status === "failed");

/** As an administrator does it: what the first row says, then another look. */
async function carryOutFixes(found: DiagnosisRow | undefined): Promise<string[]> {
  const tried: string[] = [];
  let row = found;
  for (let round = 0; round < 3 && row !== undefined; round++) {
    const commands = commandsOf(row);
    const { stdout, stderr } = await site.host.run(commands, { timeoutSeconds: 60 });
    tried.push(`${row.id}: ${commands}: ${`${stdout}${stderr}`.slice(-300)}`);
    row = firstFailed(await look());
  }
  return row === undefined ? [] : [row.id, ...row.evidence, ...tried];
}

async function restore({ undo }: ThingBroken): Promise<void> {
  await site.host.run(
    `systemctl stop thief 2> /dev/null; ${undo}; systemctl daemon-reload; systemctl reset-failed; ${OWN} activate --again; systemctl start sync-web sync-fileServer sync-webdav portico-doctor.timer logrotate.timer`,
    { timeoutSeconds: 120 },
  );
}

test("the list has every file of the deployment", async () => {
  const document = JSON.parse(await site.host.must("cat /etc/portico/deployment.json")) as {
    files: { path: string }[];
  };
  const files = [...document.files.map(({ path }) => path), "/etc/portico/deployment.json"];
  expect(files.sort()).toEqual([...FILES].sort());
});

test.each(drawn().map((one) => [caseOf(one), one] as const))(
  "%s",
  async (name, one) => {
    let isHealed = false;
    try {
      await site.host.run(one.breaks);
      const broken = await look();
      const first = firstFailed(broken);
      if (NOT_KNOWN[name] !== undefined) {
        figures.unknown++;
        expect({ name, code: broken.code === 1 }).toEqual({ name, code: false });
        return;
      }
      const said =
        first === undefined
          ? `nothing; ${notKnown(broken).join()}`
          : [first.cause, ...first.evidence, first.fix].join("\n");
      expect(said).toContain(one.named);
      figures.named++;
      const hand = BY_HAND[name];
      if (hand !== undefined) await site.host.run(hand.does);
      expect(await carryOutFixes(hand === undefined ? first : firstFailed(await look()))).toEqual([]);
      figures[hand === undefined ? "healed" : "healed by hand"]++;
      isHealed = true;
    } finally {
      if (!isHealed) await restore(one);
      expect([failed(await look()), await notServed(site)]).toEqual([[], []]);
    }
  },
  200_000,
);
