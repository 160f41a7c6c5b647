import { type LateRule, lateProblems } from "../../src/model/lateValues.js";
import { parseDeployment } from "../../src/model/deployment.js";
import { deploymentOf } from "../../testkit/deployment.js";

const late = (rule: LateRule, value: unknown) => ({
  path: "stack/part.prop",
  code: "config.bad-text" as const,
  message: "is not good",
  allowed: "a good one",
  fix: "Use a good one.",
  value,
  rule,
});

/** Values on both sides of every rule. */
test.each<[LateRule, readonly unknown[], readonly unknown[]]>([
  [{ pattern: "^w" }, ["web"], ["aweb", "", 1, null, undefined, ["web"]]],
  [{ pattern: "^w", never: "x$" }, ["web"], ["wax"]],
  [{ pattern: "", never: "fcgi", anyCase: true }, ["start"], ["fcgi", "FCGI"]],
  [{ pattern: "", lengthMax: 3 }, ["web"], ["webs"]],
  [{ pattern: "", canonicalIpv6: true }, ["web", "2001:db8::1"], ["2001:db8:0::1", "2001:DB8::1"]],
  [{ minimum: 1, maximum: 65_535 }, [1, 65_535], [0, 65_536, 1.5, "1", null, NaN]],
  [{ noneOf: [3306, "a"] }, [3307, "3306"], [3306, "a"]],
  [{ network: "192.168.1.5/24" }, ["192.168.1.1", "not an address"], ["192.168.2.1"]],
  // What is no address is said by the rule of the address.
  [{ network: "files/24" }, ["192.168.1.1"], []],
])("%j", (rule, good, bad) => {
  expect(lateProblems(good.map((value) => late(rule, value)))).toEqual([]);
  for (const value of bad)
    expect([value, lateProblems([late(rule, value)])]).toMatchObject([value, [{ path: "stack/part.prop" }]]);
});

test("a problem is that of the prop, said once, with the value unless it may be a secret", () => {
  const bad = late({ minimum: 1 }, 0);
  const { code, path, message, allowed, fix } = bad;
  const said = { code, path, message, allowed, fix };
  expect(lateProblems([bad, bad])).toEqual([{ ...said, received: "0" }]);
  expect(lateProblems([{ ...bad, hidden: true }])).toEqual([said]);
  expect(lateProblems()).toEqual([]);
});

test("they stand in the deployment document", () => {
  const { expect: _, ...deployment } = deploymentOf({ lateValues: [late({ pattern: "^w" }, "web")] });
  expect(parseDeployment(deployment)).toMatchObject({ ok: true, value: { lateValues: [{ value: "web" }] } });
});
