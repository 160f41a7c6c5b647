import { type ChildProcess, spawn } from "node:child_process";
import { publicFolder } from "../../testkit/publicFolder.js";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { createInterface, type Interface } from "node:readline";
import { build } from "esbuild";
import type { DeploymentInput, Problem } from "../../src/model/index.js";
import { document, sha256, type SiteFiles } from "./site.js";
import { nextEvent } from "../../testkit/waiting.js";

/**
 * All of this machine's files below a folder, where every change is in memory, and in it programs that stand for those
 * of systemd: they keep a unit's state in files of `/run/units`. Activation runs there with `/` as its root. On hosts
 * with the real systemd the same runs in proof/hosts.
 */
export class WholeHost {
  private constructor(
    private readonly keeper: ChildProcess,
    private readonly folder: string,
  ) {
    this.root = `/proc/${keeper.pid}/root${folder}/root`;
  }

  readonly root: string;
  private child!: ChildProcess;
  private responses!: Interface;

  /**
   * Starts what responds to calls; again after it was killed.
   * @param program the one that runs there
   * @param by a command that runs what follows it
   */
  run(program = ENTRY, by: readonly string[] = [], node = process.execPath): void {
    const { SSH_CONNECTION: _session, ...env } = process.env;
    const there = ["--mount", `--target=${this.keeper.pid}`, ...by, "chroot", path.join(this.folder, "root")];
    this.child = spawn("nsenter", [...there, node, program], {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...env, PATH: HOST_PATH },
    });
    this.responses = createInterface(this.child.stdout!);
  }

  static async start(): Promise<WholeHost> {
    const folder = publicFolder("portico-whole-host-");
    // Nobody else has its mounts, and they are gone when this process is, however it ends.
    const keeper = spawn(
      "unshare",
      ["--mount", "--propagation=private", "sh", "-euc", MOUNTS, "sh", folder],
      {
        stdio: ["pipe", "pipe", "inherit"],
      },
    );
    await nextEvent(keeper.stdout, "data");
    const host = new WholeHost(keeper, folder);
    for (const [name, text] of Object.entries(PROGRAMS)) {
      rmSync(host.at(`usr/local/sbin/${name}`), { force: true });
      host.write(`usr/local/sbin/${name}`, `#!/bin/sh\n${text}`, 0o755);
    }
    host.write("root/package.json", '{ "type": "module" }');
    await build({
      entryPoints: [path.join(__dirname, "hostEntry.ts")],
      loader: { ".md": "text" },
      bundle: true,
      platform: "node",
      format: "esm",
      // As in the product's bundle: V8 takes twice as long with other text.
      charset: "ascii",
      banner: {
        js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);',
      },
      outfile: host.at("root/entry.js"),
    });
    host.run();
    return host;
  }

  /** Nothing is deployed, no unit runs, and all goes well. */
  reset(): void {
    for (const name of [...UNTOUCHED, "run/units", "run/says", "run/calls"])
      rmSync(this.at(name), { recursive: true, force: true });
    for (const name of readdirSync(this.at("run")).filter((one) => one.startsWith("rules")))
      rmSync(this.at(`run/${name}`));
    chmodSync(this.at("usr/share"), 0o755);
    for (const name of MADE) mkdirSync(this.at(name), { recursive: true });
  }

  async stop(): Promise<void> {
    for (const child of [this.child, this.keeper]) await ended(child);
    rmdirSync(this.folder);
  }

  /** Calls one that ends the process which responds. @returns its exit code, and what it had reported */
  async cutOff(what: string, options: object): Promise<{ code: number | null; lines: string[] }> {
    const said: string[] = [];
    this.responses.on("line", (line) => said.push(...(JSON.parse(line) as Responded<unknown>).lines));
    this.child.stdin!.write(`${JSON.stringify({ what, options })}\n`);
    const [code] = (await once(this.child, "close")) as [number | null];
    this.run();
    return { code, lines: said };
  }

  /** Calls by another program, by another command, or with another Node, than usual. */
  async by<T>(
    act: () => Promise<T>,
    program?: string,
    command?: readonly string[],
    node?: string,
  ): Promise<T> {
    const { child, responses } = this;
    this.run(program, command, node);
    try {
      return await act();
    } finally {
      await ended(this.child);
      Object.assign(this, { child, responses });
    }
  }

  /** Calls a function of `hostEntry.ts` there. */
  async call<T = unknown>(what: string, options?: unknown, more: object = {}): Promise<Responded<T>> {
    const response = new Promise<string>((done) => this.responses.once("line", done));
    this.child.stdin!.write(`${JSON.stringify({ what, options, ...more })}\n`);
    return JSON.parse(await response) as Responded<T>;
  }

  /** The command line, in this process. */
  async cli(...args: string[]): Promise<Printed> {
    return (await this.call<Printed>("cli", args)).value;
  }

  /** The command line, in a process of its own, which nothing else is told of. */
  async portico(...args: string[]): Promise<Printed> {
    const there = ["--mount", `--target=${this.keeper.pid}`, "chroot", path.join(this.folder, "root")];
    const env = { ...process.env, PATH: HOST_PATH, SSH_CONNECTION: "" };
    const command = [...there, process.execPath, ENTRY, ...args];
    const child = spawn("nsenter", command, { stdio: ["ignore", "pipe", "pipe"], env });
    const printed = { out: "", err: "" };
    child.stdout.on("data", (text) => (printed.out += text));
    child.stderr.on("data", (text) => (printed.err += text));
    const [code] = (await once(child, "close")) as [number];
    return { code, ...printed };
  }

  at(file: string): string {
    return path.join(this.root, file);
  }

  read(file: string): string {
    return readFileSync(this.at(file), "utf8");
  }

  exists(file: string): boolean {
    return existsSync(this.at(file));
  }

  write(file: string, content: string, mode = 0o644): void {
    mkdirSync(path.dirname(this.at(file)), { recursive: true });
    writeFileSync(this.at(file), content, { mode });
  }

  /** What a program of `PROGRAMS` says from then on, and its status. */
  says(program: string, text: string, status = 0): void {
    this.write(`/run/says/${program}`, text);
    this.write(`/run/says/${program}.status`, String(status));
  }

  /** The state of a unit: `active`, `failed`, … */
  state(unit: string, state?: string): string {
    const file = `/run/units/${unit}`;
    if (state !== undefined) this.write(file, state);
    return this.exists(file) ? this.read(file).trim() : "inactive";
  }

  /** What was done since the last call of this. */
  calls(): string[] {
    const file = "/run/calls";
    const calls = this.exists(file) ? this.read(file).trim().split("\n") : [];
    rmSync(this.at(file), { force: true });
    return calls;
  }

  /** Uploads a deployment. */
  deliver(files: SiteFiles, more: Partial<DeploymentInput> = {}): DeploymentInput {
    const deployment = document(files, more);
    mkdirSync(this.at(INCOMING), { recursive: true, mode: 0o700 });
    for (const { content } of Object.values(files))
      this.write(`${INCOMING}/${sha256(content)}`, content, 0o600);
    this.write(`${INCOMING}/deployment.json`, JSON.stringify(deployment));
    return deployment;
  }

  activate(more: object = {}, call: object = {}): Promise<Responded<ActivatedThere>> {
    return this.call("activate", { incoming: INCOMING, ...more }, call);
  }

  /** Names of files below a directory. */
  below(directory: string): string[] {
    return this.exists(directory)
      ? readdirSync(this.at(directory), { recursive: true }).map(String).sort()
      : [];
  }
}

async function ended(child: ChildProcess): Promise<void> {
  child.stdin!.end();
  await once(child, "close");
}

export interface Printed {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export interface Responded<T> {
  readonly value: T;
  readonly lines: string[];
  readonly problems?: readonly Problem[];
  readonly reason?: readonly Problem[];
  readonly notRestored?: readonly Problem[];
  readonly threw?: string;
}

export interface ActivatedThere {
  readonly plan: readonly string[];
  readonly warnings: readonly Problem[];
  readonly responses: readonly object[];
}

export const INCOMING = "/var/lib/portico/incoming/one";

const ENTRY = "/root/entry.js";
const HOST_PATH = "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Makes the root below a folder, says so, and lasts until its input ends. */
const MOUNTS = `
mount -t tmpfs tmpfs "$1"
cd "$1"
mkdir upper work root
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" root
for name in proc dev tmp; do mount --bind "/$name" "root/$name"; done
mount -t tmpfs tmpfs root/run
echo ready
exec cat`;

/** What a deployment may have left on this machine is not part of the host. */
const UNTOUCHED = [
  "etc/portico",
  "etc/systemd/system",
  "var/lib/portico",
  "var/log/portico",
  "usr/lib/portico",
  "usr/share/portico",
];

const MADE = [
  "etc/systemd/system",
  "opt/sync/media",
  "run/portico",
  "run/says",
  "run/systemd/system",
  "run/units",
  "var/log/portico",
];

/** Says what a test had written for it. */
const SAYS = `name=\${0##*/}
echo "$name $*" >> /run/calls
[ ! -e /run/says/$name ] || cat /run/says/$name >&2
[ ! -e /run/says/$name.status ] || exit "$(cat /run/says/$name.status)"
`;

const PROGRAMS: Readonly<Record<string, string>> = {
  systemctl: `
files=/etc/systemd/system
command=$1
shift
asked() { [ "$1" = "$2" ] || { echo "asked for: $1" >&2; exit 9; }; }
# The first line of a file, or else the second word.
line() { text=$2; [ ! -e "$1" ] || read -r text < "$1" || :; }
if [ "$command" = show ]; then
  [ ! -e /run/says/show ] || { cat /run/says/show >&2; exit 1; }
  case $1 in
    --property=RuntimeDirectory) asked "$2 $3" "--value --"; echo portico; exit ;;
    --property=ActiveState) asked "$2" --value; line "/run/units/$3" inactive; echo "$text"; exit ;;
  esac
  shift 2
  for unit; do
    own=$files/$unit
    state=/run/units/$unit
    if [ -L $own ]; then echo LoadState=masked
    elif [ -e $own ] || [ -e $state ]; then echo LoadState=loaded
    else echo LoadState=not-found
    fi
    line $state inactive; echo "ActiveState=$text"
    links=disabled
    for link in $files/*.wants/$unit; do [ ! -L $link ] || links=enabled; done
    line $state.links $links; echo "UnitFileState=$text"
    [ ! -e $state.read ] || [ ! $own -nt $state.read ] || echo NeedDaemonReload=yes
    if [ -e $own ] || [ -e $state.fragment ]; then line $state.fragment $own; echo "FragmentPath=$text"; fi
    paths=
    for path in $files/$unit.d/*.conf; do [ ! -e $path ] || paths="$paths $path"; done
    if [ -e $state.dropins ]; then paths="$paths $(cat $state.dropins)"; fi
    echo "DropInPaths=\${paths# }"
    echo "MainPID=0"
    echo
  done
  exit
fi
journal=
[ ! -e /var/lib/portico/deployment/journal.json ] || [ ! -e $files/multi-user.target.wants/portico-recovery.service ] || journal=" (journal)"
echo "$command \${2:-}$journal" >> /run/calls
unit=\${2:-}
[ $command = daemon-reload ] || asked "$1" --
# What a test has go wrong there.
[ ! -e "/run/units/$unit.$command" ] || . "/run/units/$unit.$command"
case $command in
  daemon-reload)
    for file in $files/*.*; do [ ! -f $file ] || : > /run/units/\${file##*/}.read; done ;;
  start | restart | reload-or-restart) echo active > /run/units/$unit ;;
  stop | reset-failed) echo inactive > /run/units/$unit ;;
  enable | reenable) [ -d $files/multi-user.target.wants ] || mkdir $files/multi-user.target.wants; ln -sf ../$unit $files/multi-user.target.wants/$unit ;;
  disable) rm -f $files/*.wants/$unit ;;
esac
exit 0
`,
  "systemd-run": `
echo "systemd-run $*" >> /run/calls
[ ! -e /run/says/systemd-run ] || exit 1
for option; do
  shift
  case $option in
    --unit=*) unit=\${option#--unit=} ;;
    --) break ;;
  esac
done
echo active > /run/units/$unit
( "$@" > /dev/null 2>&1 < /dev/null; echo inactive > /run/units/$unit ) > /dev/null 2>&1 &
`,
  journalctl: `
since=\${3#--since=@}
[ "$1 $2 $4 $5 $6" = "--unit portico.service --lines=12 --output=cat --no-pager" ] || { echo "asked for: $*"; exit; }
[ $(($(date +%s) - since)) -le 60 ] && [ $since -le $(date +%s) ] || { echo "asked since $since"; exit; }
cat /run/says/journalctl 2> /dev/null
[ ! -e /run/says/journalctl.status ] || exit "$(cat /run/says/journalctl.status)"
`,
  networkctl: SAYS,
  keepalived: SAYS,
  "systemd-analyze": SAYS,
  nft: `
case $1 in
  --check)
    echo "nft $1" >> /run/calls
    ! grep -q broken "$3" || { grep -n broken "$3" | sed "s|^|$3:|" >&2; exit 1; } ;;
  -f) cp "$2" /run/rules-staged; ! grep broken "$2" >&2 ;;
  *)
    [ "$1 $2 $3" = "--stateless --numeric list" ] || { echo "asked for: $*" >&2; exit 9; }
    case $4 in
      ruleset) cat /run/rules-staged ;;
      table) cat "/run/rules-$5-$6" 2> /dev/null || { echo "no table $5 $6" >&2; exit 1; } ;;
    esac ;;
esac
`,
};
