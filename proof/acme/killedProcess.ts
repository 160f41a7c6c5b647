import fsp from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { AcmeEngine, type AcmeHost, type OrderedCertificate } from "../../src/runtime/acme/engine.js";

/** The engine in a process of its own, which a test kills; challenges and what was issued go to the test. */
interface Order {
  readonly state: string;
  readonly wanted: OrderedCertificate;
  /** Dies at this change of a file, before it or after it. */
  readonly dieAt?: { readonly change: number; readonly when: "before" | "after" };
}

const { state, wanted, dieAt } = JSON.parse(process.argv[2]!) as Order;

const die = (): boolean => process.kill(process.pid, "SIGKILL");
let changes = 0;

/** Every change of a file goes by one of these. */
for (const name of ["rename", "rm"] as const) {
  const real = fsp[name] as (...args: unknown[]) => Promise<void>;
  const counted = async (...args: unknown[]): Promise<void> => {
    changes += 1;
    const mine = changes === dieAt?.change;
    if (mine && dieAt.when === "before") die();
    await real(...args);
    if (mine) die();
  };
  Object.assign(fsp, { [name]: counted });
}
syncBuiltinESMExports();

const waiting: (() => void)[] = [];
process.on("message", () => waiting.shift()?.());

const host: AcmeHost = {
  respondToChallenges: (challenges) =>
    new Promise((resolve) => {
      waiting.push(resolve);
      process.send!({ challenges });
    }),
  unfit: () => Promise.resolve(undefined),
  install: (issued) => void process.send!({ issued }),
  log: (level, message) => void process.send!({ line: `${level} ${message}` }),
};

const certificates = new AcmeEngine(state, host);
void certificates.stored([wanted]).then((stored) => {
  for (const issued of stored.values()) host.install(issued);
  certificates.lookAfter([wanted]);
});
