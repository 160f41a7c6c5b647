import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../../../testkit/ports.js";
import { CREDENTIALS, type Suite } from "./litmus.js";

/** Where the servers serve their files, as the front end forwards it: the path is left as it is (service 4.1). */
export const DAV_PATH = "/syncdav";

export interface DavServer {
  readonly port: number;
  /** What it serves, on this machine's disk. */
  readonly root: string;
  stop(): Promise<void>;
}

/** How a server is started: its command line, and the files it needs. */
interface Recipe {
  /** What to install. */
  readonly needs: string;
  /** What it wants a `Destination` to be; the front end's default is a path. */
  readonly destination?: "absolute";
  /** Suites of litmus that it passes as a whole: what the front end could break must be seen to work without it. */
  readonly passes: readonly Suite[];
  /** How many files it takes at once; 4 by default. */
  readonly transfers?: number;
  /** Wrong passwords that it is sent meanwhile; by default those of an hour, five a second. */
  readonly wrongPasswords?: number;
  /** The version, or nothing if the server is not here. */
  version(): string | undefined;
  command(place: { readonly folder: string; readonly root: string; readonly port: number }): string[];
}

const firstLine = (command: string, ...args: string[]): string | undefined => {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: "utf8" });
  return status === 0 ? (stdout + stderr).split("\n")[0]!.trim() : undefined;
};

const WSGIDAV_VERSION = "4.4.0";
const WSGIDAV = join(__dirname, "../../../.cache/wsgidav");

/** Three servers that share no code: C, Go and Python. */
export const SERVERS: Readonly<Record<string, Recipe>> = {
  apache: {
    needs: "the Debian package apache2-bin",
    // mod_dav refuses the path that RFC 4918, 10.3 allows.
    destination: "absolute",
    passes: ["basic", "copymove"],
    version: () => firstLine("/usr/sbin/apache2", "-v"),
    command: ({ folder, root, port }) => {
      const modules = "/usr/lib/apache2/modules";
      const config = join(folder, "httpd.conf");
      const loaded = [
        "mpm_event",
        "authn_core",
        "authn_file",
        "authz_core",
        "authz_user",
        "auth_basic",
        "alias",
      ];
      const users = join(folder, "users");
      const digest = createHash("sha1").update(CREDENTIALS.password).digest("base64");
      writeFileSync(users, `${CREDENTIALS.user}:{SHA}${digest}\n`, { mode: 0o644 });
      writeFileSync(
        config,
        [
          ...[...loaded, "dav", "dav_fs"].map(
            (name) => `LoadModule ${name}_module ${modules}/mod_${name}.so`,
          ),
          `Listen 127.0.0.1:${port}`,
          "ServerName localhost",
          "User www-data",
          "Group www-data",
          `PidFile ${folder}/pid`,
          `ErrorLog ${folder}/error.log`,
          `DefaultRuntimeDir ${folder}`,
          `DavLockDB ${folder}/locks/db`,
          `DocumentRoot ${root}`,
          `Alias ${DAV_PATH} ${root}`,
          `<Location ${DAV_PATH}>`,
          "  Dav On",
          "  AuthType Basic",
          '  AuthName "files"',
          `  AuthUserFile ${users}`,
          "  Require valid-user",
          "</Location>",
          "",
        ].join("\n"),
      );
      mkdirSync(join(folder, "locks"));
      const www = Number(firstLine("id", "-u", "www-data"));
      for (const owned of [root, join(folder, "locks")]) chownSync(owned, www, www);
      return ["/usr/sbin/apache2", "-d", folder, "-f", config, "-D", "FOREGROUND"];
    },
  },
  rclone: {
    needs: "the Debian package rclone",
    passes: ["copymove"],
    // It locks the folder of a file that comes; a second file of the same folder may be 423 then.
    transfers: 1,
    version: () => firstLine("rclone", "version"),
    command: ({ root, port }) => [
      ...["rclone", "serve", "webdav", root, "--addr", `127.0.0.1:${port}`, "--baseurl", DAV_PATH],
      ...["--config", "/dev/null", "--user", CREDENTIALS.user, "--pass", CREDENTIALS.password],
    ],
  },
  wsgidav: {
    needs: "Python 3 with venv, and its package index",
    passes: ["basic", "copymove"],
    // It takes some milliseconds for each.
    wrongPasswords: 2_000,
    version: () => {
      const program = join(WSGIDAV, "bin/wsgidav");
      if (!existsSync(program)) {
        const made = spawnSync("python3", ["-m", "venv", WSGIDAV]).status === 0;
        const packages = [`wsgidav==${WSGIDAV_VERSION}`, "cheroot"];
        if (made) spawnSync(join(WSGIDAV, "bin/pip"), ["install", "--quiet", ...packages]);
      }
      const version = existsSync(program) ? firstLine(program, "--version") : undefined;
      return version === undefined ? undefined : `wsgidav ${version}`;
    },
    command: ({ folder, root, port }) => {
      const config = join(folder, "wsgidav.json");
      const settings = {
        host: "127.0.0.1",
        port,
        provider_mapping: { [DAV_PATH]: root },
        simple_dc: { user_mapping: { "*": { [CREDENTIALS.user]: { password: CREDENTIALS.password } } } },
        http_authenticator: { accept_basic: true, accept_digest: false, default_to_digest: false },
        property_manager: true,
        lock_storage: true,
        verbose: 1,
      };
      writeFileSync(config, JSON.stringify(settings));
      return [join(WSGIDAV, "bin/wsgidav"), "--config", config];
    },
  },
};

/** Starts one of them with an empty folder. */
export async function startServer(name: string): Promise<DavServer> {
  const folder = mkdtempSync(join(tmpdir(), `portico-dav-${name}-`));
  // A server that runs as somebody else has to find its files.
  chmodSync(folder, 0o755);
  const root = join(folder, "root");
  mkdirSync(root);
  const port = await freePort();
  const [command, ...args] = SERVERS[name]!.command({ folder, root, port });
  const child = spawn(command!, args, { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (data) => (said = (said + data).slice(-2000)));
  const stop = async (): Promise<void> => {
    await end(child);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await listening(port, child, () => said);
  } catch (error) {
    await stop();
    throw error;
  }
  return { port, root, stop };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill();
  const late = setTimeout(() => child.kill("SIGKILL"), 5_000);
  await ended;
  clearTimeout(late);
}

async function listening(port: number, child: ChildProcess, said: () => string): Promise<void> {
  for (const deadline = Date.now() + 20_000; ;) {
    const socket = connect(port, "127.0.0.1");
    const open = await new Promise((done) => {
      socket.once("connect", () => done(true));
      socket.once("error", () => done(false));
    });
    socket.destroy();
    if (open) return;
    if (child.exitCode !== null || Date.now() > deadline)
      throw new Error(`the server does not start: ${said()}`);
    await sleep(100);
  }
}
