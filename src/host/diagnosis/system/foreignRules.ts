import { run } from "./command.js";

/** A rule of another program's table that may keep packets from the front end. */
export interface ForeignRule {
  /** Family and name of the table, then the chain: `ip filter INPUT`. */
  readonly chain: string;
  /** The rule, or the policy of the chain. */
  readonly text: string;
  /** Whether it is about packets from some addresses only, as the bans of fail2ban are. */
  readonly isOfSome: boolean;
  /** A command that takes it away, or lets the ports pass. */
  readonly fix: string;
}

/** The table of the deployment; its rules have a row of their own. */
const OWN = "inet portico";

/** Rules of other tables that concern the ports, or VRRP; undefined if nft gives no answer. */
export async function foreignRules(
  ports: readonly number[],
  vrrp: boolean,
): Promise<readonly ForeignRule[] | undefined> {
  const listed = await run(["nft", "--stateless", "--numeric", "--handle", "list", "ruleset"], LIST_SECONDS);
  return listed.code === 0 ? rulesAbout(listed.stdout, ports, vrrp) : undefined;
}

const LIST_SECONDS = 20;

/** The same of a printed rule set. */
export function rulesAbout(ruleSet: string, ports: readonly number[], vrrp: boolean): ForeignRule[] {
  let [table, chain, hook] = ["", "", ""];
  const found: ForeignRule[] = [];
  for (const line of ruleSet.split("\n").map((one) => one.trim())) {
    const [, opened] = /^table (\S+ \S+) \{/.exec(line) ?? [];
    const [, named] = /^chain (\S+) \{/.exec(line) ?? [];
    if (opened !== undefined) [table, chain, hook] = [opened, "", ""];
    if (named !== undefined) [chain, hook] = [named, ""];
    if (table === OWN || chain === "") continue;
    const where = `${table} ${chain}`;
    const [, at, policy] = /^type \S+ hook (\w+) .*?(?:policy (\w+);)?(?: #.*)?$/.exec(line) ?? [];
    if (at !== undefined) {
      hook = at;
      if (at === "input" && policy === "drop")
        found.push({ chain: where, text: "policy drop", isOfSome: false, fix: lets(table, chain, ports) });
      continue;
    }
    const [rule = "", handle = ""] = line.split(" # handle ");
    const isOfPorts = !PASSED_ON.has(hook) && ports.some((port) => isAbout(rule, port));
    if (!REFUSES.test(rule) || !(isOfPorts || (vrrp && VRRP.test(rule)))) continue;
    const fix = `nft delete rule ${where} handle ${handle}; to make it last, change the configuration of ${ownerOf(chain)}`;
    found.push({ chain: where, text: rule, isOfSome: SOME.test(rule), fix });
  }
  return found;
}

const REFUSES = /\b(?:drop|reject|redirect|dnat|tproxy|queue)\b/;
/** Hooks that no packet to a port of this machine passes. */
const PASSED_ON = new Set(["output", "forward", "postrouting"]);
const VRRP = /\b(?:ip protocol|l4proto) (?:112|vrrp)\b/;
/** Conditions on the client. */
const SOME = /\bsaddr\b|\biif(?:name)? "?lo"?\b|\blimit rate over\b|\bct state\b|\bct count\b/;

/** Whether a rule is about packets to a port. */
function isAbout(rule: string, port: number): boolean {
  const [, set = ""] = /\bdport (\{[^}]*\}|\S+)/.exec(rule) ?? [];
  return set
    .replaceAll(/[{}\s]/g, "")
    .split(",")
    .some((item) => {
      const [from = "", to = from] = item.split("-");
      return /^\d+$/.test(from) && Number(from) <= port && port <= Number(to);
    });
}

function lets(table: string, chain: string, ports: readonly number[]): string {
  const accepts = `nft insert rule ${table} ${chain} tcp dport { ${ports.join(", ")} } accept`;
  return `${accepts}; to make it last, let the ports pass where the table comes from (such as ufw allow ${ports.join(",")}/tcp)`;
}

export function ownerOf(chain: string): string {
  if (/^ufw/i.test(chain)) return "ufw";
  if (/^docker/i.test(chain)) return "Docker (a container publishes the port)";
  if (/^f2b|fail2ban/i.test(chain)) return "fail2ban";
  return "the program that made the table";
}
