import dns from "node:dns/promises";
import type { LookupAddress } from "node:dns";
import { ONLY_TIMEOUTS } from "../../testkit/fakeTimers.js";
import { parseConfig } from "../../src/model/index.js";
import { Queue } from "../../src/runtime/queue.js";
import { ServedUpstreams } from "../../src/runtime/supervisor/served/servedUpstreams.js";

/** What the error log says of names whose addresses are servers, as lookups succeed and fail every five seconds. */

const URL = "http://web.example:8000";
const FAILED = `warn upstream "web": the name in ${URL} was not found: `;
const ARE = `warn upstream "web": the servers of ${URL} are now `;

afterEach(() => {
  jest.useRealTimers();
  jest.restoreAllMocks();
});

/** Looks up a name again and again. @param responses addresses, or codes of failures, of one lookup each */
async function logged(responses: readonly (readonly string[] | string)[]): Promise<string[]> {
  const document = {
    version: 1,
    listeners: [{ name: "http", address: "127.0.0.1", port: 80, protocol: "http" }],
    upstreams: [{ name: "web", url: URL, spread: true }],
    virtualServers: [{ name: "a", serverNames: ["_"], default: true, listeners: ["http"], routes: [] }],
  };
  const parsed = parseConfig(document);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  let asked = 0;
  jest.spyOn(dns, "lookup").mockImplementation(((name: string) => {
    expect(name).toBe("web.example");
    const response = responses[asked++]!;
    return typeof response === "string"
      ? Promise.reject(Object.assign(new Error("no"), { code: response }))
      : Promise.resolve(response.map((address): LookupAddress => ({ address, family: 4 })));
  }) as unknown as typeof dns.lookup);
  jest.useFakeTimers(ONLY_TIMEOUTS);
  const lines: string[] = [];
  const nobody = { orderServers: () => Promise.resolve([]), orderPauses: () => Promise.resolve([]) };
  const served = new ServedUpstreams(
    {
      loaded: () => ({ config: parsed.value }) as never,
      supervised: nobody,
      changes: new Queue(),
      notNow: () => undefined,
    },
    { write: (level, message) => void lines.push(`${level} ${message}`) },
  );
  await served.lookAfter();
  await jest.advanceTimersByTimeAsync(4_999);
  expect(asked).toBe(0);
  await jest.advanceTimersByTimeAsync(responses.length * 5_000);
  expect(asked).toBe(responses.length);
  served.stop();
  await jest.advanceTimersByTimeAsync(60_000);
  expect(asked).toBe(responses.length);
  return lines;
}

test.each<[what: string, responses: (string[] | string)[], lines: string[]]>([
  ["a failure", ["ENOTFOUND", "ENOTFOUND", "EAI_AGAIN", "ENOTFOUND"], [`${FAILED}ENOTFOUND`]],
  [
    "each failure after a success",
    ["ENOTFOUND", ["192.0.2.1"], "EAI_AGAIN", "EAI_AGAIN", ["192.0.2.1"], "ENOTFOUND"],
    [
      `${FAILED}ENOTFOUND`,
      `${ARE}http://192.0.2.1:8000`,
      ...["EAI_AGAIN", "ENOTFOUND"].map((code) => FAILED + code),
    ],
  ],
  ["a name without an address", [[], [], ["fe80::1%eth0"]], [`${FAILED}it has no address`]],
  [
    "a change of addresses, in whatever order they come",
    [["192.0.2.2", "192.0.2.1"], ["192.0.2.1", "192.0.2.2", "192.0.2.1"], ["192.0.2.2"], ["192.0.2.2"]],
    [`${ARE}http://192.0.2.1:8000, http://192.0.2.2:8000`, `${ARE}http://192.0.2.2:8000`],
  ],
  [
    "a change of hundreds of addresses, shortened,",
    [Array.from({ length: 300 }, (_, i) => `192.0.2.${100 + i}`)],
    [
      `${ARE}${Array.from({ length: 10 }, (_, i) => `http://192.0.2.${100 + i}:8000`).join(", ")} and 246 more`,
    ],
  ],
])("%s is logged once", async (_what, responses, lines) => {
  expect(await logged(responses)).toEqual(lines);
});
