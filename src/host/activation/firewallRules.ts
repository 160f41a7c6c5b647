import { BlockList, isIP } from "node:net";

/**
 * Whether an nftables rule lets a client reach a TCP port, as far as such rules are understood here: `tcp dport` with
 * the port, `accept`, and before it no source address or one that is the client's. Other conditions of a rule (an
 * interface) are assumed to be met.
 */
export function admits(rules: string, client: string, port: string): boolean {
  const opens = new RegExp(`\\btcp dport (?:\\{[^}]*\\b${port}\\b[^}]*\\}|${port}\\b)(?= ).*\\baccept\\b`);
  return rules.split("\n").some((line) => {
    const rule = line.replace(/#.*/, "");
    const found = opens.exec(rule);
    return found !== null && isAdmitted(rule, client);
  });
}

function isAdmitted(rule: string, client: string): boolean {
  const [, family, not, set] = /\b(ip6?) saddr (!= )?(\{[^}]*\}|\S+)/.exec(rule) ?? [];
  if (set === undefined) return true;
  if ((family === "ip6" ? 6 : 4) !== isIP(client)) return false;
  const ranges = set.replace(/[{}]/g, "").split(",");
  return ranges.some((range) => contains(range.trim(), client)) === (not === undefined);
}

function contains(range: string, client: string): boolean {
  const type = isIP(client) === 6 ? "ipv6" : "ipv4";
  const list = new BlockList();
  try {
    const [first = "", last] = range.split("-");
    const [address = "", bits] = range.split("/");
    if (last !== undefined) list.addRange(first, last, type);
    else if (bits !== undefined) list.addSubnet(address, Number(bits), type);
    else list.addAddress(address, type);
  } catch {
    // A name, or a variable of the rule set: it is not known to be the client's.
    return false;
  }
  return list.check(client, type);
}
