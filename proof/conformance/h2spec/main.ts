import { spawn, spawnSync } from "node:child_process";
import { publicFolder } from "../../../testkit/publicFolder.js";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { laboratory } from "../../../testkit/laboratory.js";
import { startStage } from "../../wire/stage.js";
import { ROOT } from "../../../build/paths.js";
import { type Case, failures, readReport } from "./report.js";

const VERSION = "v2.2.1+incompatible";
/** Cases of this version, for each path: a run that ends early, or a report that is cut, has fewer. */
const CASES = 146;
const BIN = join(ROOT, ".cache/h2spec");
const PATHS = ["/sync/", "/syncmedia/img/a.png"];

laboratory(
  `npm run h2spec: every case of h2spec, the strict ones too, against the bundled proxy on the front end's TLS listener

Once on a proxied route and once on static files. The tool is built from its pinned version where it is missing.`,
  {},
  async () => {
    const tool = install();
    const stage = await startStage();
    const wrong: string[] = [];
    try {
      for (const path of PATHS) {
        const cases = await run(tool, stage.tls.ports.https, path);
        console.log(`${path}: ${cases.length} of ${CASES} cases, ${failures(cases).length} failed`);
        if (cases.length !== CASES) wrong.push(`${path}: ${cases.length} cases of ${CASES}`);
        for (const { section, name, outcome } of failures(cases))
          wrong.push(`${path}: ${section} ${name}: ${outcome}`);
      }
    } finally {
      await stage.stop();
    }
    return { wrong };
  },
);

/** Its module has no go.mod, so Go chooses versions of what it needs, which `-mod=readonly` forbids. */
const INSTALL = `. "$3"
GOFLAGS= go install "\${go_flags[@]}" "github.com/summerwind/h2spec/cmd/h2spec@$1"
mv "$GOBIN/h2spec" "$2"`;

/** Builds the tool from source, checked against the checksum database of Go. @returns its path */
function install(): string {
  const tool = join(BIN, `h2spec-${VERSION}`);
  if (existsSync(tool)) return tool;
  console.log(`building h2spec ${VERSION}`);
  const { status, error } = spawnSync(
    "bash",
    ["-euc", INSTALL, "bash", VERSION, tool, join(ROOT, "testkit/goPrograms.sh")],
    { env: { ...process.env, GOBIN: BIN }, stdio: "inherit" },
  );
  if (error !== undefined) throw error;
  if (status !== 0)
    throw new Error("h2spec could not be built: it needs Go 1.17 or later, and the Go module proxy");
  return tool;
}

async function run(tool: string, port: number, path: string): Promise<Case[]> {
  const folder = publicFolder("portico-h2spec-");
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
