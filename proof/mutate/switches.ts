import type { Fault } from "./faults.js";

/** In the switch file: no fault is on, and what is reached is recorded. */
export const RECORD = "record";

/** So often a process says once more that it reached a fault, as meanwhile another test may have begun. */
const AGAIN_MS = 20;

/** File next to the switch file with the numbers of the faults that were reached, below the name of the test that ran. */
export const reachedFile = (switchFile: string): string => `${switchFile}.reached`;

/**
 * A source that has several faults built in, each switched on by its number. All faults of a run are in one tree, so that
 * it is built once; the numbers are read from a file, so that processes which start others with an environment of their
 * own, or as another user, have them as well.
 */
export function withSwitches(
  text: string,
  faults: readonly (Fault & { readonly id: number })[],
  switchFile: string,
): string {
  const heading =
    `const __fs = process.getBuiltinModule("node:fs"), ` +
    `__on = __fs.readFileSync(${JSON.stringify(switchFile)}, "utf8").split(" "); ` +
    `const __fault = __on[0] !== "${RECORD}" ? (id) => __on.includes(id) : (id) => { ` +
    `const reached = (globalThis.__reached ??= new Map()), now = Date.now(); ` +
    `if (now - (reached.get(id) ?? 0) > ${AGAIN_MS}) { reached.set(id, now); ` +
    // A process without a free descriptor says it with the next one.
    `globalThis.__unsaid = (globalThis.__unsaid ?? "") + id + " "; ` +
    `try { __fs.appendFileSync(${JSON.stringify(reachedFile(switchFile))}, globalThis.__unsaid); ` +
    `globalThis.__unsaid = ""; } catch {} } return false; };`;
  // From the last to the first, so that positions stay true; of two inside each other the inner one comes first.
  let out = text;
  for (const fault of [...faults].sort((a, b) => b.start - a.start || a.end - b.end)) {
    const original = out.slice(fault.start, fault.end);
    const on = `__fault("${fault.id}")`;
    // In braces: an `else` after it belongs to the `if` before it.
    const switched = fault.expression
      ? `(${on} ? ((${fault.to}) as never) : (${original}))`
      : `{ if (!${on}) { ${original} } }`;
    out = out.slice(0, fault.start) + switched + out.slice(fault.end);
  }
  // Types are checked on the sources as they are; others that import from here see no other type either (`never`).
  return `// @ts-nocheck\n${heading} ${out}`;
}

/** Faults that can be in one tree: none touches a part of another's. */
export function apart<F extends Fault>(faults: readonly F[]): F[] {
  const taken: F[] = [];
  for (const fault of faults) {
    const overlaps = taken.some(
      ({ file, start, end }) => file === fault.file && start < fault.end && fault.start < end,
    );
    if (!overlaps) taken.push(fault);
  }
  return taken;
}
