import { bytesOf, type Timeline, type ExchangeScript, HOST, idOf, STRANGE_HOSTS } from "../wire/timeline.js";
import { caseAt } from "./generate.js";
import { http2Turns } from "../wire/http2Input.js";
import { http1Turns, LANE_MIN } from "../wire/http1Input.js";
import { blamed } from "../wire/blamed.js";
import { least, Shrinking } from "../wire/search.js";
import { smaller } from "./smaller.js";
import { TARGETS } from "./targets.js";

/** `npm run exchanges` judges the real proxy; here, that its cases are what they say, and get smaller. */
const SEED = 20261121;
const cases = Array.from({ length: 600 }, (_, index) => caseAt(SEED, index));
const exchanges = (played: Timeline): readonly ExchangeScript[] =>
  played.clients.flatMap((client) => client.exchanges);

describe("a case", () => {
  test("depends only on its seed and number", () => {
    expect(caseAt(SEED, 345)).toEqual(cases[345]);
    expect(caseAt(SEED + 1, 345).clients).not.toEqual(cases[345]!.clients);
  });

  test("covers every protocol, kind of body, response and flaw within a few hundred", () => {
    const all = cases.flatMap(exchanges);
    const found = (values: readonly unknown[]): unknown[] => [...new Set(values)].sort();
    expect(found(cases.flatMap(({ clients }) => clients.map(({ protocol }) => protocol)))).toHaveLength(3);
    expect(found(all.map(({ body }) => body?.end))).toHaveLength(6);
    expect(found(all.map(({ response }) => response.flaw))).toHaveLength(9);
    expect(found(all.map(({ response }) => `${response.when} ${response.then}`))).toHaveLength(15);
    expect(found(all.map(({ to }) => to))).toHaveLength(Object.keys(TARGETS).length);
    expect(found(all.map(({ response }) => response.held))).toHaveLength(4);
    expect(all.some(({ upgrade, response }) => upgrade && response.status === 101)).toBe(true);
    expect(all.some(({ body }) => body !== undefined && body.off > 0)).toBe(true);
    expect(all.some(({ to, body }) => to === TARGETS.limited && body?.framing === "chunked")).toBe(true);
    const ownHosts = all.filter(({ to }) => to.ownHostsOnly).map(({ host }) => host);
    expect(ownHosts).toEqual(expect.arrayContaining([HOST, STRANGE_HOSTS[0]]));
    expect(cases.some(({ clients }) => clients.some(({ stays }) => stays))).toBe(true);
  });

  test.each([
    ["HTTP/1.1, at every byte", 0],
    ["HTTP/2, at every frame and around it", 512],
    ["HTTP/1.1 over TLS, at every byte", 1_024],
  ])("that is small is played once for each boundary: %s", (_, from) => {
    const at: number[] = [];
    for (let index = from; ; index++) {
      const [client] = caseAt(SEED, index).clients;
      if (client?.splits.kind !== "border") break;
      at.push(client.splits.at);
      expect(client.exchanges).toEqual(caseAt(SEED, from).clients[0]!.exchanges);
    }
    const last = from + at.length - 1;
    const client = caseAt(SEED, last).clients[0]!;
    const http2 = client.protocol === "h2";
    const turns = (http2 ? http2Turns : http1Turns)(last, 0, client, LANE_MIN);
    const parts = turns.flatMap(({ parts }) => parts.map(({ bytes }) => bytes.length));
    const ends = parts.map((_, i) => parts.slice(0, i + 1).reduce((sum, bytes) => sum + bytes, 0));
    const total = ends.pop()!;
    const every = Array.from({ length: total - 1 }, (_, i) => i + 1);
    if (!http2) expect(at).toEqual(every);
    else expect(at).toEqual(expect.arrayContaining(ends.flatMap((end) => [end - 1, end, end + 1, end + 8])));
    expect(at.length).toBeLessThan(512);
  });
});

test("the first byte of a message already shows which exchange it belongs to", () => {
  const ids = Array.from({ length: 26 }, (_, n) => idOf(n, 0, 0));
  const first = new Set(ids.map((id) => bytesOf("body", id, 1).toString()));
  expect(first.size).toBeGreaterThan(10);
  expect(bytesOf("body", ids[0]!, 40)).not.toEqual(bytesOf("response", ids[0]!, 40));
});

describe("a case that fails", () => {
  const shrunk = async (index: number, fails: (exchange: ExchangeScript) => boolean) => {
    const kindsOf = (played: Timeline): string[] => (exchanges(played).some(fails) ? ["fails"] : []);
    const play = (played: Timeline) => Promise.resolve({ kinds: kindsOf(played) });
    const from = new Shrinking(cases[index]!, smaller);
    return (await least(from, 0, play, new Set(), 10_000)).failed!.played;
  };

  test("becomes one exchange that is plain, but for what makes it fail", async () => {
    const isOne = ({ response }: ExchangeScript): boolean => response.framing === "chunked";
    const index = cases.findIndex((played) => played.clients.length > 2 && exchanges(played).some(isOne));
    const { clients, together } = await shrunk(index, isOne);
    expect(together).toBe(false);
    expect(clients).toMatchObject([{ pipelined: false, splits: { kind: "joined" }, abort: undefined }]);
    expect(clients[0]!.exchanges).toMatchObject([
      {
        method: "GET",
        to: TARGETS.plain,
        body: undefined,
        response: { framing: "chunked", flaw: "none", bytes: 10 },
      },
    ]);
  });

  test("comes to an end, whatever it is", async () => {
    for (const index of cases.keys()) {
      const played = await shrunk(index, () => true);
      expect(exchanges(played)).toHaveLength(1);
      expect([...smaller(played)]).toEqual([]);
    }
  });
});

describe("a line of the error log", () => {
  const plain = cases.findIndex((played) =>
    played.clients.every(
      ({ abort, exchanges }) =>
        abort === undefined &&
        exchanges.every(
          ({ body, response }) => body === undefined && response.flaw === "none" && response.then === "keep",
        ),
    ),
  );
  const line = (level: string, message: string): string =>
    `2026/11/22 07:16:01 [${level}] 7#7: *5 ${message}, client: 127.0.0.1, server: h, request: "GET /e0/${plain}.0.0 HTTP/1.1"`;

  test.each([
    ["crit", "something of ours"],
    ["info", "client sent chunk size is not a hex number"],
    ["error", "upstream sent an invalid response: malformed status line"],
  ])("%s: %s of an exchange without a fault is one", (level, message) => {
    const found = blamed(line(level, message), (index) => caseAt(SEED, index));
    expect(found).toEqual([{ index: plain, faults: [expect.stringContaining(message)] }]);
  });

  test("that its script explains is not a finding", () => {
    const [played] = cases.filter(({ clients }) => clients[0]!.exchanges[0]!.response.flaw === "garbage");
    const said = line("error", "upstream sent an invalid response").replace(
      `/${plain}.`,
      `/${played!.index}.`,
    );
    expect(blamed(said, (index) => caseAt(SEED, index))).toEqual([]);
  });
});
