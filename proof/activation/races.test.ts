import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { appendFileSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { build } from "esbuild";
import { activateScript, draftOf, prepareScript, receiveScript, scriptOf } from "../../src/render/index.js";
import { Random, SEED, seedOf } from "../../testkit/random.js";
import { CONFIG, document, sha256, Site, type SiteFile, type SiteFiles, SITES, siteFiles } from "./site.js";

/**
 * Two applies of one deployment at once, without a lock: each was planned on the same state, uploads what it changes, and
 * runs the script of a delivery, with the real activation below a folder. The order of their steps, and where one of
 * them is killed, are generated.
 */
const ROUNDS = 8;
const RUNTIME = "/usr/lib/portico/portico.mjs";
const IDENTITY = { id: "0b7a", construct: "stack/files/Host" };

let folder: string;
let program: string;

beforeAll(async () => {
  folder = mkdtempSync(path.join(SITES, "portico races "));
  program = path.join(folder, "program.cjs");
  const entryPoints = [path.join(__dirname, "raceEntry.ts")];
  await build({ entryPoints, bundle: true, platform: "node", format: "cjs", outfile: program });
}, 60_000);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A runtime as a file of the deployment: its own content, and the activation that is under test. */
const runtimeOf = (version: string): SiteFile => ({
  role: "runtime",
  mode: "0755",
  content: `// ${version}
if (process.argv[2] === "--version") console.log("portico 0.0.0");
else await import(${JSON.stringify(program)});
`,
});

/** How a run of a script ended. */
interface Ended {
  readonly green: boolean;
  readonly killed: boolean;
  readonly said: string;
  /** The document on the host when the script had ended. */
  readonly there: string;
}

/** One apply: its uploads are sent once, and its activation as often as it is tried. */
class Apply {
  readonly document: string;
  private readonly text: string;
  readonly ended: Ended[] = [];
  running = false;

  constructor(
    private readonly site: Site,
    private readonly files: SiteFiles,
    private readonly from: SiteFiles,
  ) {
    this.text = JSON.stringify(document(files));
    this.document = sha256(this.text);
  }

  private get places() {
    const store = this.site.at("/var/lib/portico/deployment");
    return { store, incoming: this.site.at("/var/lib/portico/incoming/0b7a"), identity: IDENTITY };
  }

  /** What the apply does before it activates, step by step. */
  *uploading(): Generator<void> {
    for (const [file, { content }] of Object.entries(this.files)) {
      if (this.from[file]?.content === content) continue;
      yield* this.upload(randomUUID(), [content, ""]);
    }
  }

  private *upload(id: string, ...contents: [content: string, suffix: string][]): Generator<void> {
    const upload = { incoming: this.places.incoming, id, byUser: false, staging: "terraform_data.staging" };
    for (const [content, suffix] of contents) {
      const draft = draftOf(upload, sha256(content), suffix);
      const half = content.length >> 1;
      writeFileSync(draft, content.slice(0, half));
      yield;
      appendFileSync(draft, content.slice(half));
      yield;
    }
    this.must(
      receiveScript(
        upload,
        contents.map(([, suffix]) => suffix),
      ),
    );
    yield;
  }

  prepare(): void {
    this.must(prepareScript(this.places));
  }

  private must(script: string): void {
    const { status, stderr } = spawnSync("/bin/sh", ["-eu", "-c", script], { encoding: "utf8" });
    if (status !== 0) throw new Error(`ended with ${status}: ${stderr}`);
  }

  /** @param killAfterMs for an apply that is killed with all that it has started */
  *activating(killAfterMs?: number): Generator<void, Promise<void>> {
    const runtime = { path: this.site.at(RUNTIME), sha256: sha256(this.files[RUNTIME]!.content) };
    const script = activateScript(this.places, {
      node: { path: process.execPath },
      runtime,
      document: this.document,
    });
    const id = randomUUID();
    yield* this.upload(id, [this.text, ""], [script, ".sh"]);
    const file = scriptOf({
      incoming: this.places.incoming,
      id,
      byUser: false,
      staging: "terraform_data.staging",
    });
    const env = { ...process.env, PORTICO_TEST_ROOT: this.site.root };
    this.running = true;
    return this.outcome(spawn("/bin/sh", ["-eu", file, ""], { env, detached: true }), killAfterMs);
  }

  private async outcome(child: ChildProcess, killAfterMs: number | undefined): Promise<void> {
    let said = "";
    for (const stream of [child.stdout!, child.stderr!]) stream.on("data", (data) => (said += data));
    const closed = once(child, "close");
    let killed = false;
    if (killAfterMs !== undefined) {
      await Promise.race([closed, sleep(killAfterMs)]);
      killed = child.exitCode === null;
      if (killed) process.kill(-child.pid!, "SIGKILL");
    }
    await closed;
    this.running = false;
    this.ended.push({ green: child.exitCode === 0, killed, said, there: documentOf(this.site) });
  }
}

function documentOf(site: Site): string {
  return JSON.parse(site.read("/var/lib/portico/deployment/state.json")).document;
}

const drain = async (steps: Generator<void, Promise<void> | void>): Promise<void> => {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return void (await value);
  }
};

/** Some files of a version, on top of those of another. */
function changed(random: Random, from: SiteFiles, to: SiteFiles): SiteFiles {
  const names = Object.keys(to).filter(() => random.is(0.6));
  return { ...from, ...Object.fromEntries([...names, CONFIG].map((name) => [name, to[name]!])) };
}

test.each(Array.from({ length: ROUNDS }, (_, i) => i))(
  "round %i",
  async (round) => {
    const random = new Random(seedOf(SEED, round));
    const site = new Site();
    try {
      const version = async (name: string): Promise<SiteFiles> =>
        siteFiles(name, { [RUNTIME]: runtimeOf(name) });
      const first = await version("1");
      const files = [
        changed(random, first, await version("the second")),
        changed(random, first, await version("a third")),
      ];
      const before = new Apply(site, first, {});
      before.prepare();
      await drain(before.uploading());
      await drain(before.activating());
      expect(before.ended).toMatchObject([{ green: true, there: before.document }]);

      const applies = files.map((each) => new Apply(site, each, first));
      // At most one dies.
      const victim = random.is(0.4) ? random.pick(2) : undefined;
      const rest = applies.map((apply, i) => {
        const killAfterMs = i === victim ? random.upTo(900) : undefined;
        return (function* (): Generator<void, Promise<void>> {
          yield* apply.uploading();
          return yield* apply.activating(killAfterMs);
        })();
      });
      const running: Promise<void>[] = [];
      while (rest.length > 0) {
        const next = random.of(...rest);
        const { done, value } = next.next();
        if (!done) continue;
        rest.splice(rest.indexOf(next), 1);
        running.push(value);
        // The other one goes on at once, or somewhere in this activation.
        if (random.is(0.7)) await Promise.race([value, sleep(random.upTo(1200))]);
      }
      await Promise.all(running);

      for (const [i, apply] of applies.entries()) {
        const [{ green, killed, said, there }] = apply.ended as [Ended];
        const other = applies[1 - i]!;
        expect(said).not.toMatch(/missing-blob|corrupt-blob|was not delivered/);
        if (green) {
          expect(said).toContain(`the host has the document ${apply.document}, activated at `);
          // Unless the other one has become the host's since.
          expect([apply.document, other.document]).toContain(there);
          if (there !== apply.document)
            expect(other.ended).toContainEqual(expect.objectContaining({ green: true }));
        } else if (!killed) expect(said).toMatch(/activation\.other-document/);
      }
      // What is there in the end has an apply that was green, or whose shell was killed at the end of its activation.
      const last = applies.find(({ document: own }) => own === documentOf(site));
      if (last !== undefined && victim === undefined) expect(last.ended[0]!.green).toBe(true);

      // Each may run again, in any order and more than once: nothing that it needs was collected.
      for (let i = 0; i < 3; i++) {
        const apply = random.of(...applies);
        await drain(apply.activating());
        expect(apply.ended.at(-1)).toMatchObject({ green: true, there: apply.document });
        for (const [file, { content }] of Object.entries(files[applies.indexOf(apply)]!))
          expect(sha256(site.read(file))).toBe(sha256(content));
      }
      // Of runs that have ended nothing is left.
      const left = readdirSync(site.at("/var/lib/portico/incoming/0b7a"));
      if (victim === undefined) expect(left.filter((name) => /^run\.|\.sh$|\.new$/.test(name))).toEqual([]);
    } finally {
      site.remove();
    }
  },
  120_000,
);
