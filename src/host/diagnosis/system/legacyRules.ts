import { readFileSync } from "node:fs";
import { quote } from "../../../render/shell.js";
import { run } from "./command.js";
import { type ForeignRule, ownerOf } from "./foreignRules.js";

/** Rules of iptables-legacy, which the kernel keeps apart from those of nft, as iptables-save(8) prints them. */

/** The two families: where the kernel lists its tables, and their program. */
const FAMILIES = [
  { names: "/proc/net/ip_tables_names", program: "iptables-legacy" },
  { names: "/proc/net/ip6_tables_names", program: "ip6tables-legacy" },
] as const;

export interface LegacyRules {
  readonly rules: readonly ForeignRule[];
  /** Why it is unknown whether there are others. */
  readonly unseen?: string;
}

/** Rules that concern the ports, or VRRP. */
export async function legacyRules(ports: readonly number[], vrrp: boolean): Promise<LegacyRules> {
  const rules: ForeignRule[] = [];
  const unseen: string[] = [];
  for (const { names, program } of FAMILIES) {
    const tables = tablesIn(names);
    // If there are no tables, the program is not run: it would make them.
    if (tables.length === 0) continue;
    const saved = await run([`${program}-save`], SAVE_SECONDS);
    if (saved.code === 0) rules.push(...legacyRulesAbout(saved.stdout, program, ports, vrrp));
    else unseen.push(`the tables ${tables.join(", ")} of ${program} (${saved.stderr.trim()})`);
  }
  return {
    rules,
    ...(unseen.length === 0 ? {} : { unseen: `rules that could not be read: ${unseen.join("; ")}` }),
  };
}

const SAVE_SECONDS = 20;

function tablesIn(file: string): string[] {
  try {
    return readFileSync(file, "utf8").split("\n").filter(Boolean).sort();
  } catch {
    // The kernel has no such tables.
    return [];
  }
}

/** The same of printed rules. */
export function legacyRulesAbout(
  saved: string,
  program: string,
  ports: readonly number[],
  vrrp: boolean,
): ForeignRule[] {
  let table = "";
  const found: ForeignRule[] = [];
  for (const line of saved.split("\n")) {
    table = /^\*(\w+)$/.exec(line)?.[1] ?? table;
    const at = (chain: string): string => `${program} ${table} ${chain}`;
    if (table === "filter" && line.startsWith(":INPUT DROP")) {
      const accept = `${program} -I INPUT -p tcp -m multiport --dports ${ports.join(",")} -j ACCEPT`;
      const fix = `${accept}; to make it last, let the ports pass where the rules come from (such as ufw allow ${ports.join(",")}/tcp)`;
      found.push({ chain: at("INPUT"), text: "policy DROP", isOfSome: false, fix });
    }
    const [, chain = "", text = ""] = /^-A (\S+) (.*)$/.exec(line) ?? [];
    const isOfPorts = !PASSED_ON.has(chain) && ports.some((port) => isAbout(text, port));
    if (!REFUSES.test(text) || !(isOfPorts || (vrrp && VRRP.test(text)))) continue;
    const fix = `${program} -t ${table} -D ${[chain, ...wordsOf(text)].map(quote).join(" ")}; to make it last, change the configuration of ${ownerOf(chain)}`;
    found.push({ chain: at(chain), text, isOfSome: SOME.test(text), fix });
  }
  return found;
}

/**
 * The words of a printed rule. In quotes, which a comment has, `"`, `'` and the backslash have one before them, and nothing
 * keeps a shell from expanding the rest.
 */
function wordsOf(rule: string): string[] {
  const words: string[] = [];
  let [word, quoted] = ["", false];
  for (let i = 0; i < rule.length; i++) {
    const char = rule[i]!;
    if (char === '"') quoted = !quoted;
    else if (quoted && char === "\\") word += rule[++i] ?? "";
    else if (char !== " " || quoted) word += char;
    else {
      words.push(word);
      word = "";
    }
  }
  return [...words, word];
}

const REFUSES = /(?:^| )-j (?:DROP|REJECT|REDIRECT|DNAT|TPROXY|N?F?QUEUE)\b/;
/** Chains that no packet to a port of this machine passes. */
const PASSED_ON = new Set(["OUTPUT", "FORWARD", "POSTROUTING"]);
const VRRP = /(?<!! )-p (?:112|vrrp)\b/;
/** Conditions on the client. */
const SOME =
  /(?:^| )(?:-s|--src-range|--match-set|-i lo|--(?:ct)?state|--hashlimit\S*|--connlimit\S*|--limit) ?/;

/** Whether a rule is about packets to a port. */
function isAbout(rule: string, port: number): boolean {
  const [, list = ""] = /(?<!! )--(?:dports?|ports) (\S+)/.exec(rule) ?? [];
  return list.split(",").some((item) => {
    const [from = "", to = from] = item.split(":");
    return /^\d+$/.test(from) && Number(from) <= port && port <= Number(to);
  });
}
