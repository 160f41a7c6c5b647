import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AcmeEngine, type OrderedCertificate } from "../../src/runtime/acme/engine.js";
import { eventually } from "../../testkit/waiting.js";
import { Between } from "./between.js";
import { type CaOptions, TestCa } from "./ca.js";
import { Responder } from "./responder.js";
import { TestClock } from "./testClock.js";

type Settings = Partial<Omit<OrderedCertificate, "authority">> & {
  readonly authority?: Partial<OrderedCertificate["authority"]>;
};

/**
 * All that a test needs: an authority, what stands before it, who responds to its challenges, a clock, and a state
 * directory.
 */
export interface Stage {
  readonly ca: TestCa;
  readonly between: Between;
  readonly host: Responder;
  readonly clock: TestClock;
  readonly state: string;
  /** The engine on the state directory; stopped at the end. */
  engine(): AcmeEngine;
  wanted(names: readonly string[], more?: Settings): OrderedCertificate;
  stop(): Promise<void>;
}

/** @param shared an authority that several stages have, one after the other; whoever started it stops it */
export async function startStage(options: CaOptions = {}, shared?: TestCa): Promise<Stage> {
  const ca = shared ?? (await TestCa.start(options));
  const [between, host] = await Promise.all([Between.start(ca), Responder.start(ca)]);
  const clock = new TestClock();
  const state = mkdtempSync(join(tmpdir(), "portico-acme-"));
  const engines: AcmeEngine[] = [];
  return {
    ca,
    between,
    host,
    clock,
    state,
    engine: () => {
      const engine = new AcmeEngine(state, host, clock);
      engines.push(engine);
      return engine;
    },
    wanted: (names, { authority, ...more } = {}) => ({
      id: `ca-${createHash("sha256").update(names.join(" ")).digest("hex").slice(0, 16)}`,
      names,
      keyType: "ecdsa-p256",
      challenge: "http-01",
      ...more,
      authority: {
        name: "ca",
        directory: between.directory,
        email: "admin@example.org",
        agreeToTerms: true,
        roots: ca.roots,
        ...authority,
      },
    }),
    stop: async () => {
      await Promise.all(engines.map((engine) => engine.stop()));
      await Promise.all([between.stop(), host.stop(), ...(shared === undefined ? [ca.stop()] : [])]);
      rmSync(state, { recursive: true, force: true });
    },
  };
}

/** Waits until a certificate was issued, and moves the clock on meanwhile if it is to. */
export async function issued(stage: Stage, id: string, minutes = 0): Promise<void> {
  const before = stage.host.installed.get(id);
  await eventually(
    () => {
      if (minutes > 0) stage.clock.advance(minutes * 60_000);
      return stage.host.installed.get(id) !== before;
    },
    "for a certificate",
    { seen: () => stage.host.lines.join("\n"), everyMs: minutes > 0 ? 200 : 10 },
  );
}
