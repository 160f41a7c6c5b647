import { type Outcome, run } from "../diagnosis/command.js";

/** Whether the kernel has the rules of a file; `unknown` if this cannot be determined, with the reason. */
export type LoadedRules =
  | { readonly state: "loaded" }
  | { readonly state: "missing" | "different"; readonly tables: readonly string[] }
  | { readonly state: "unknown"; readonly why: string };

/**
 * Compares the rules that the kernel has with those of a file. What nft prints differs from its input, so the file is
 * loaded into an empty, temporary network namespace, and both are printed by the same nft. Counters are ignored.
 */
export async function loadedRules(file: string, nft = "nft"): Promise<LoadedRules> {
  const script = `${nft} -f "$1" && ${nft} --stateless --numeric list ruleset`;
  const wanted = await run(["unshare", "--net", "sh", "-c", script, "nft", file], SECONDS);
  if (wanted.code !== 0) return { state: "unknown", why: said(wanted) };
  const tables = [...wanted.stdout.matchAll(/^table (.*) \{/gm)].map(([, table]) => table!);
  const found: [string, Outcome][] = [];
  for (const table of tables) {
    const [family = "", name = ""] = table.split(" ");
    const list = ["--stateless", "--numeric", "list", "table", family, name];
    found.push([table, await run([nft, ...list], SECONDS)]);
  }
  const missing = found.filter(([, { code }]) => code !== 0).map(([table]) => table);
  if (missing.length > 0) return { state: "missing", tables: missing };
  const different = found
    .filter(([table, { stdout }]) => stdout.trim() !== tableIn(wanted.stdout, table))
    .map(([table]) => table);
  return different.length > 0 ? { state: "different", tables: different } : { state: "loaded" };
}

/** One table of a printed rule set. */
function tableIn(ruleSet: string, table: string): string {
  const from = ruleSet.indexOf(`table ${table} {`);
  const end = ruleSet.indexOf("\n}", from);
  return `${ruleSet.slice(from, end)}\n}`;
}

const said = ({ stderr, code }: Outcome): string => stderr.trim() || `status ${code}`;
const SECONDS = 20;
