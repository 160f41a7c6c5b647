import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { ROOT } from "../../build/paths.js";
import { runUnseen } from "../../testkit/unseen.js";
import { freePort } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";

/** Debian's CrowdSec with its own parsers and scenarios. Not installed: its package registers the machine at its vendor's. */
const PACKAGE = join(ROOT, ".cache/crowdsec");
const STAMP = join(PACKAGE, "made");

/** Unpacks the package, unless it is there. */
export async function prepareCrowdSec(): Promise<void> {
  if (existsSync(STAMP)) return;
  rmSync(PACKAGE, { recursive: true, force: true });
  mkdirSync(PACKAGE, { recursive: true });
  const get = "apt-get download -qq crowdsec";
  const script = `cd "$1"; ${get} || { apt-get update -qq && ${get}; }; dpkg-deb -x crowdsec_*.deb .`;
  await runUnseen("sh", ["-ec", script, "sh", PACKAGE]);
  // Last, so that a package that was cut off is not taken for a whole one.
  writeFileSync(STAMP, "");
}

/** What the collection `crowdsecurity/nginx` has of parsers, and its scenario of failed log-ins. */
const PARTS = [
  "parsers/s00-raw/crowdsecurity/syslog-logs.yaml",
  "parsers/s01-parse/crowdsecurity/nginx-logs.yaml",
  "parsers/s02-enrich/crowdsecurity/dateparse-enrich.yaml",
  "parsers/s02-enrich/crowdsecurity/http-logs.yaml",
  "scenarios/crowdsecurity/http-generic-bf.yaml",
];

/** CrowdSec with its local interface on a loopback port; it connects to nobody else. */
export class CrowdSecHere {
  private constructor(
    readonly folder: string,
    private readonly server: ChildProcess,
  ) {}

  /** @param acquisition content of the acquisition file */
  static async start(acquisition: string): Promise<CrowdSecHere> {
    const folder = mkdtempSync(join(tmpdir(), "portico-crowdsec-"));
    const hub = join(PACKAGE, "usr/share/crowdsec/hub");
    for (const name of ["data", "acquis.d"]) mkdirSync(join(folder, name));
    for (const part of PARTS) {
      const [kind, stage] = part.split("/") as [string, string];
      const directory = join(folder, kind, kind === "parsers" ? stage : "");
      mkdirSync(directory, { recursive: true });
      symlinkSync(join(hub, part), join(directory, basename(part)));
    }
    cpSync(join(PACKAGE, "etc/crowdsec/patterns"), join(folder, "patterns"), { recursive: true });
    for (const name of ["profiles.yaml", "simulation.yaml"])
      cpSync(join(PACKAGE, "etc/crowdsec", name), join(folder, name));
    writeFileSync(join(folder, "acquis.d/portico.yaml"), acquisition);
    writeFileSync(join(folder, "console.yaml"), "{}\n");
    writeFileSync(join(folder, "local_api_credentials.yaml"), "");
    const url = `127.0.0.1:${await freePort()}`;
    writeFileSync(join(folder, "config.yaml"), configText(folder, hub, url));
    const credentials = ["-f", join(folder, "local_api_credentials.yaml")];
    await run(folder, "cscli", "machines", "add", "--auto", "-u", `http://${url}`, ...credentials);
    const program = join(PACKAGE, "usr/bin/crowdsec");
    const server = spawn(program, ["-c", join(folder, "config.yaml"), "-no-cs"], { stdio: "ignore" });
    const here = new CrowdSecHere(folder, server);
    const responds = async (): Promise<boolean> =>
      fetch(`http://${url}/health`).then(
        ({ status }) => status === 200,
        () => false,
      );
    await eventually(responds, "until CrowdSec responds", { everyMs: 100 });
    return here;
  }

  /** Whether each line of a log is one that the parser takes, by the line. */
  async parsed(log: string): Promise<Map<string, boolean>> {
    const file = this.write(log);
    const { stdout } = await this.run("cscli", "explain", "--file", file, "--type", "nginx");
    const lines = stdout.split(/^line: /m).slice(1);
    return new Map(lines.map((text) => [text.split("\n")[0]!, text.includes("parser success")]));
  }

  /** Addresses that would be banned because of a log, by the stock scenarios. */
  async bans(log: string): Promise<string[]> {
    const dsn = `file://${this.write(log)}`;
    await this.run("crowdsec", "-no-api", "-type", "nginx", "-dsn", dsn);
    const { stdout } = await this.run("cscli", "decisions", "list", "-o", "json");
    const alerts = JSON.parse(stdout) as { decisions: { value: string }[] }[] | null;
    return (alerts ?? []).flatMap(({ decisions }) => decisions.map(({ value }) => value));
  }

  /** Runs one of its programs, and fails if the program does. */
  run(program: "crowdsec" | "cscli", ...args: readonly string[]): Promise<{ stdout: string }> {
    return run(this.folder, program, ...args);
  }

  async stop(): Promise<void> {
    const ended = once(this.server, "exit");
    this.server.kill();
    await ended;
    rmSync(this.folder, { recursive: true, force: true });
  }

  private write(log: string): string {
    const file = join(this.folder, "access.log");
    writeFileSync(file, log, "latin1");
    return file;
  }
}

function run(folder: string, program: string, ...args: readonly string[]): Promise<{ stdout: string }> {
  const programs = join(PACKAGE, "usr/bin");
  // `cscli explain` starts `crowdsec`.
  const env = { ...process.env, PATH: `${programs}:${process.env["PATH"]}` };
  const command = ["-c", join(folder, "config.yaml"), ...args];
  return promisify(execFile)(join(programs, program), command, { env, cwd: folder });
}

const configText = (folder: string, hub: string, url: string): string => `common:
  daemonize: false
  log_media: stdout
  log_level: info
  working_dir: ${folder}
config_paths:
  config_dir: ${folder}/
  data_dir: ${folder}/data/
  simulation_path: ${folder}/simulation.yaml
  hub_dir: ${hub}/
  index_path: ${hub}/.index.json
  plugin_dir: ${folder}/data/
crowdsec_service:
  acquisition_dir: ${folder}/acquis.d
  parser_routines: 1
db_config:
  log_level: info
  type: sqlite
  db_path: ${folder}/data/crowdsec.db
api:
  client:
    credentials_path: ${folder}/local_api_credentials.yaml
  server:
    listen_uri: ${url}
    profiles_path: ${folder}/profiles.yaml
    console_path: ${folder}/console.yaml
`;
