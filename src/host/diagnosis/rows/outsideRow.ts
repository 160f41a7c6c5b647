import type { EngineRow } from "../../../model/index.js";
import type { Evidence } from "../evidence.js";
import type { ForeignRule } from "../system/foreignRules.js";
import {
  explained,
  failure,
  notAsked,
  ok,
  OUTAGES,
  type Question,
  unknown,
  type Verdict,
} from "../verdict.js";

/** Asked only on the host, by root. Rows before it say what already fails from inside. */
export const OUTSIDE_QUESTION: Question<EngineRow> = {
  id: "outside",
  title: "Other machines get the responses that the host itself gets",
  ask: askOutside,
};

function askOutside(evidence: Evidence, failed: ReadonlySet<string>): Verdict {
  const { outside, foreignRules = [], rulesUnseen } = evidence;
  const rules = [
    ...foreignRules.map(({ chain, text }) => `rule of another table, ${chain}: ${text}`),
    ...(rulesUnseen === undefined ? [] : [rulesUnseen]),
  ];
  if (outside === undefined) {
    const cause = OUTAGES.find((id) => failed.has(id));
    return cause === undefined
      ? notAsked(["not asked from outside", ...rules].join("; "))
      : explained(cause, ...rules);
  }
  if ("why" in outside) return withoutNetwork(outside.why, foreignRules, rules);
  const seen = outside.asked.flatMap(({ address, failed: rows }) =>
    rows
      .filter(({ id }) => isOnlyOutside(id, evidence, failed))
      .map((row) => `from beside the host, ${address}: ${row.cause ?? row.id}${shown(row.evidence)}`),
  );
  if (seen.length > 0 && failed.has("firewall")) return explained("firewall", ...seen);
  const vrrp = foreignRules.filter(({ text }) => / (?:112|vrrp)\b/.test(text));
  if (seen.length === 0 && vrrp.length === 0)
    return ok(...outside.asked.map(({ address }) => `${address}: as from inside`), ...rules);
  const fixes = (vrrp.length > 0 && seen.length === 0 ? vrrp : foreignRules).map(({ fix }) => fix);
  if (vrrp.length > 0 && seen.length === 0)
    return failure(
      "a rule of another table keeps VRRP from the other host of the pair: both may have the address",
      rules,
      fixes.join("; "),
    );
  // If rules choose between clients, this machine's own network may be among those that are refused.
  if (foreignRules.length > 0 && foreignRules.every(({ isOfSome }) => isOfSome))
    return unknown(
      [...seen, ...rules, "The rules treat clients differently: check from a client"].join("; "),
    );
  const cause =
    foreignRules.length === 0
      ? "other machines do not get the responses that the host itself gets"
      : "rules of another table keep other machines from the front end";
  const fix =
    fixes.join("; ") ||
    "nft list ruleset and ip rule show what treats packets from other machines differently.";
  return failure(cause, [...seen, ...rules], fix);
}

function withoutNetwork(why: string, foreign: readonly ForeignRule[], rules: readonly string[]): Verdict {
  const blocking = foreign.filter(({ isOfSome }) => !isOfSome);
  const said = `not asked from outside: ${why}`;
  if (blocking.length === 0) return notAsked([said, ...rules].join("; "));
  return failure(
    "rules of another table are in the way of the front end's ports",
    [...rules, said],
    blocking.map(({ fix }) => fix).join("; "),
  );
}

const shown = ([first]: readonly string[]): string => (first === undefined ? "" : ` (${first})`);

/** Whether a row that fails from outside is in order from inside. */
function isOnlyOutside(id: string, { responses }: Evidence, failed: ReadonlySet<string>): boolean {
  // The hairpin row asks that network's own router: it says nothing about the host.
  if (failed.has(id) || id === "hairpin") return false;
  const inside = responses.filter(({ row }) => `response: ${row.name}`.startsWith(id));
  return inside.length === 0 || inside.some(({ checked }) => checked.pass);
}
