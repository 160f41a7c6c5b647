import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** What one scanner saw, in words that are the same for both. */
export interface Seen {
  /** `TLSv1.2` and the like, in ascending order. */
  readonly protocols: readonly string[];
  /** OpenSSL names by protocol, in the order the server prefers. */
  readonly ciphers: Readonly<Record<string, readonly string[]>>;
  /** Key exchange groups, sorted: `secp384r1`, `x25519`. */
  readonly groups: readonly string[];
}

/** Something that testssl.sh holds against the server. */
export interface Finding {
  readonly id: string;
  readonly severity: string;
  readonly finding: string;
}

export interface TestsslReport {
  readonly findings: readonly Finding[];
  /** What it tried and could not find out. */
  readonly notPerformed: readonly Finding[];
  /** Every statement by its id. */
  readonly said: ReadonlyMap<string, string>;
}

/** Versions of the scanners; undefined for one that is not here. */
export function versions(): Record<"testssl" | "sslscan", string | undefined> {
  const ask = (command: string, pattern: RegExp): string | undefined => {
    const { stdout, stderr } = spawnSync(command, ["--version"], { encoding: "utf8" });
    return pattern.exec(`${stdout}${stderr}`)?.[1];
  };
  return {
    testssl: ask("testssl", /testssl(?:\.sh)?\s+(?:version )?(\d[\w.]*)/),
    sslscan: ask("sslscan", /(\d+\.\d+\.\d+)/),
  };
}

async function run(command: string, args: readonly string[]): Promise<string> {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
  const late = setTimeout(() => child.kill("SIGKILL"), 1_800_000);
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (said += data));
  await new Promise((done, failed) => {
    child.once("close", done);
    child.once("error", failed);
  });
  clearTimeout(late);
  return said;
}

/**
 * Protocols, ciphers, forward secrecy, preferences, certificate and every vulnerability that testssl.sh knows.
 * @param authority file of a certificate that it trusts besides the usual ones
 */
export async function testssl(port: number, authority?: string): Promise<TestsslReport> {
  const folder = mkdtempSync(join(tmpdir(), "portico-testssl-"));
  const file = join(folder, "report.json");
  try {
    const sections = ["-p", "-s", "-f", "-P", "-S", "-U"];
    const quietly = ["--quiet", "--color", "0", "--warnings", "batch", "--nodns", "none"];
    // Its exit status counts findings.
    const said = await run("testssl", [
      ...quietly,
      ...["--openssl-timeout", "10", "--jsonfile", file],
      ...(authority === undefined ? [] : ["--add-ca", authority]),
      ...sections,
      `https://127.0.0.1:${port}`,
    ]);
    return readTestssl(readReport(file, said));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function readReport(file: string, said: string): Finding[] {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as Finding[];
  } catch (error) {
    throw new Error(`testssl.sh left no report: ${(error as Error).message}\n${said.slice(-2000)}`);
  }
}

const HELD_AGAINST = ["LOW", "MEDIUM", "HIGH", "CRITICAL", "FATAL"];

function readTestssl(report: readonly Finding[]): TestsslReport {
  const pick = ({ id, severity, finding }: Finding): Finding => ({ id, severity, finding });
  return {
    findings: report.filter(({ severity }) => HELD_AGAINST.includes(severity)).map(pick),
    notPerformed: report.filter(({ severity }) => severity === "WARN").map(pick),
    said: new Map(report.map(({ id, finding }) => [id, finding])),
  };
}

/** What sslscan sees: it tries every protocol, cipher and group. */
export async function sslscan(port: number): Promise<Seen & { readonly weaknesses: readonly string[] }> {
  const xml = await run("sslscan", ["--no-colour", "--xml=-", `127.0.0.1:${port}`]);
  const all = (element: string): Record<string, string>[] =>
    [...xml.matchAll(new RegExp(`<${element} ([^>]*?)/?>`, "g"))].map(([, attributes]) =>
      Object.fromEntries(
        [...attributes!.matchAll(/([\w-]+)="([^"]*)"/g)].map(([, key, value]) => [key, value]),
      ),
    );
  const protocols = all("protocol")
    .filter(({ enabled }) => enabled === "1")
    .map(({ type, version }) => (type === "tls" ? `TLSv${version}` : `SSLv${version}`));
  if (protocols.length === 0) throw new Error(`sslscan saw no protocol: ${xml.slice(-2000)}`);
  const ciphers: Record<string, string[]> = {};
  for (const { sslversion, cipher } of all("cipher")) (ciphers[sslversion!] ??= []).push(cipher!);
  const weaknesses = [
    ...all("heartbleed")
      .filter(({ vulnerable }) => vulnerable === "1")
      .map(({ sslversion }) => `heartbleed with ${sslversion}`),
    ...all("compression")
      .filter(({ supported }) => supported === "1")
      .map(() => "compression"),
    ...all("renegotiation")
      .filter(({ supported, secure }) => supported === "1" && secure !== "1")
      .map(() => "insecure renegotiation"),
    ...all("cipher")
      .filter(({ strength }) => !["strong", "acceptable"].includes(strength!))
      .map(({ cipher, strength }) => `${cipher} is ${strength}`),
    ...all("cipher")
      .filter(({ dhebits }) => dhebits !== undefined && Number(dhebits) < 2048)
      .map(({ cipher, dhebits }) => `${cipher} with ${dhebits} bits`),
  ];
  return {
    protocols,
    ciphers,
    groups: [...new Set(all("group").map(({ name }) => name!.split(" ")[0]!))].sort(),
    weaknesses,
  };
}
