import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startStage } from "../../wire/stage.js";
import { ROOT } from "../../../build/paths.js";
import { type Case, failures, readReport } from "./report.js";

/**
 * `npm run h2spec`: every case of h2spec, the strict ones too, against the bundled proxy on the front end's TLS
 * listener: once on a proxied route and once on static files. The tool is built from its pinned version where it is
 * missing.
 */
const VERSION = "v2.2.1+incompatible";
/** Cases of this version, for each path: a run that ends early, or a report that is cut, has fewer. */
const CASES = 146;
const BIN = join(ROOT, ".cache/h2spec");
const PATHS = ["/sync/", "/syncmedia/img/a.png"];

async function main(): Promise<void> {
  const tool = install();
  const stage = await startStage();
  const cases: Case[] = [];
  let complete = true;
  try {
    for (const path of PATHS) {
      const found = await run(tool, stage.tls.ports.https, path);
      cases.push(...found);
      complete &&= found.length === CASES;
      const failed = failures(found);
      console.log(`${path}: ${found.length} of ${CASES} cases, ${failed.length} failed`);
      for (const { section, name, outcome } of failed) console.log(`  ${section} ${name}: ${outcome}`);
    }
  } finally {
    await stage.stop();
  }
  process.exitCode = failures(cases).length === 0 && complete ? 0 : 1;
}

/** Builds the tool from source, checked against the checksum database of Go. @returns its path */
function install(): string {
  const tool = join(BIN, `h2spec-${VERSION}`);
  if (existsSync(tool)) return tool;
  console.log(`building h2spec ${VERSION}`);
  const { status, error } = spawnSync(
    "sh",
    [
      "-c",
      'go install "github.com/summerwind/h2spec/cmd/h2spec@$1" && mv "$GOBIN/h2spec" "$2"',
      "sh",
      VERSION,
      tool,
    ],
    { env: { ...process.env, GOBIN: BIN }, stdio: "inherit" },
  );
  if (error !== undefined) throw error;
  if (status !== 0)
    throw new Error("h2spec could not be built: it needs Go 1.17 or later, and the Go module proxy");
  return tool;
}

async function run(tool: string, port: number, path: string): Promise<Case[]> {
  const folder = mkdtempSync(join(tmpdir(), "portico-h2spec-"));
  try {
    const report = join(folder, "report.xml");
    const args = [
      "--strict",
      "-t",
      "-k",
      "-h",
      "127.0.0.1",
      "-p",
      String(port),
      "-P",
      path,
      "-o",
      "5",
      "-j",
      report,
    ];
    const child = spawn(tool, args, { stdio: ["ignore", "ignore", "inherit"] });
    await once(child, "close");
    return readReport(readFileSync(report, "utf8"));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

void main();
