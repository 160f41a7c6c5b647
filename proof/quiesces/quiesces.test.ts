import { type CommandRun, judge } from "./judge.js";
import { rounds } from "./rounds.js";

/** `npm run quiesces` in short, and that its judge sees what is wrong. */

test("uploads go on around commands that are closed in, whatever is killed meanwhile", async () => {
  const seed = Number(process.env["PORTICO_SEED"]);
  const { wrong, figures } = await rounds(
    ["nothing", "command", "master", "worker", "reload", "slow", "master"],
    seed,
    () => undefined,
  );
  expect(wrong).toEqual([]);
  expect(figures.whole).toBeGreaterThanOrEqual(3);
  expect(Math.min(figures.stored, figures.refused)).toBeGreaterThan(0);
}, 90_000);

describe("the judge", () => {
  const run: CommandRun = {
    code: 0,
    wanted: 0,
    mayFail: false,
    errors: "",
    begin: 100,
    end: 200,
    refuseMs: 1_000,
  };
  const write = { target: "/a", begin: 10, end: 100, digest: "a" };
  const tally = { stored: [{ target: "/a", digest: "a" }], odd: [], refused: [90] };

  test("finds nothing in what is right", () => {
    expect(judge(tally, [write, { ...write, target: "/b", begin: 200, end: 300 }], run)).toEqual([]);
    const disowned = { ...run, code: 125, mayFail: true };
    expect(judge(tally, [{ ...write, end: 150 }], disowned)).toEqual([]);
    const twice = [500, 1_400, 6_100, 7_000].map((before) => 9_000 - before);
    expect(judge({ ...tally, refused: twice }, [write], { ...run, begin: 9_000, end: 9_100 })).toEqual([]);
  });

  test.each<[string, Partial<typeof write>, Partial<CommandRun>, RegExp]>([
    ["a write that ends too late", { end: 101 }, {}, /^\/a was written from -90 to 1 ms/],
    ["a write that begins too early", { begin: 199, end: 300 }, {}, /^\/a was written/],
    ["the same under a command line that was killed", { end: 101 }, { code: null }, /^\/a was written/],
    ["an upload that is not whole", { digest: "b" }, {}, /not stored whole$/],
    ["another exit code", {}, { code: 1 }, /^exit code 1 in place of 0/],
    [
      "refusals all the time before it",
      {},
      { begin: 9_000, end: 9_100 },
      /^uploads were refused in 9 different seconds/,
    ],
    ["a command that did not run", {}, { begin: undefined }, /^the command did not run/],
  ])("finds %s", (_, wrongWrite, wrongRun, finding) => {
    const refused = Array.from({ length: 9 }, (_, i) => 90 + i * 1_000);
    expect(judge({ ...tally, refused }, [{ ...write, ...wrongWrite }], { ...run, ...wrongRun })).toEqual([
      expect.stringMatching(finding),
    ]);
  });
});
