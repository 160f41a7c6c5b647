import { type Fault, reportOf, reportText } from "./judge.js";
import { PROXIES, underLoad } from "./underLoad.js";

/** The script with uploads of 1 GiB (`npm run servers`) at a size for the suite. */

const UPLOAD_BYTES = 16 * 2 ** 20;
const CYCLES = { portico: 2, haproxy: 1 };

test("no request fails that may succeed; every kind was there, with haproxy beside", async () => {
  const reports = [];
  for (const name of PROXIES)
    reports.push(await underLoad(name, { uploadBytes: UPLOAD_BYTES, cycles: CYCLES[name] }));
  const [portico] = reports as [(typeof reports)[0]];
  for (const { requests, lost } of portico.kinds) expect(requests - lost).toBeGreaterThan(20);
  // All of haproxy's as well, so that a failure shows what it made of the same.
  expect([portico.wrong, reports.map(reportText).join("\n")]).toEqual([[], expect.any(String)]);
});

test("what is judged wrong", () => {
  const done = (id: number, kind: "read" | "post", wrong?: string) => ({
    id,
    kind,
    from: 100,
    to: 200,
    wrong,
  });
  const killed = { server: 0, kind: "killed" as const, from: 150, to: 150 } satisfies Fault;
  const judged = (one: ReturnType<typeof done>, at: number[], fault: Fault = killed) =>
    reportOf("p", [one], [fault], new Map(at.length === 0 ? [] : [[one.id, new Set(at)]])).wrong;
  expect(judged(done(1, "read", "status 502"), [0])).toHaveLength(1);
  expect(judged(done(1, "post", "status 502"), [0])).toEqual([]);
  expect(judged(done(1, "post", "status 502"), [])).toEqual([]);
  expect(judged(done(1, "post", "status 502"), [1])).toHaveLength(1);
  expect(judged(done(1, "post", "status 502"), [0], { ...killed, from: 250, to: 250 })).toHaveLength(1);
  expect(judged(done(1, "post"), [1])).toEqual([]);
});
