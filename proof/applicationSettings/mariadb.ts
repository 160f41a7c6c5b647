import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePorts } from "../../testkit/ports.js";

/** A MariaDB of the test's own: data below a temporary folder, a private port and socket, ended by its own pid. */
export interface MariaDb {
  readonly port: number;
  /** Runs statements as the server's root. */
  sql(statements: string): void;
  stop(): Promise<void>;
}

export async function startMariaDb(): Promise<MariaDb> {
  const folder = mkdtempSync(join(tmpdir(), "portico-mariadb-"));
  const [data, socket] = [join(folder, "data"), join(folder, "socket")];
  const user = process.getuid?.() === 0 ? ["--user=root"] : [];
  let server: ChildProcess | undefined;
  const stop = async (): Promise<void> => {
    if (server !== undefined && server.exitCode === null) {
      const ended = new Promise((resolve) => server!.once("exit", resolve));
      server.kill("SIGKILL");
      await ended;
    }
    rmSync(folder, { recursive: true, force: true });
  };
  const sql = (statements: string): void => {
    const args = ["--no-defaults", `--socket=${socket}`, "--user=root"];
    execFileSync("mariadb", args, { input: statements, stdio: ["pipe", "ignore", "pipe"] });
  };
  try {
    const install = [
      "--no-defaults",
      `--datadir=${data}`,
      "--auth-root-authentication-method=normal",
      "--skip-test-db",
    ];
    execFileSync("mariadb-install-db", [...install, ...user], { stdio: "ignore" });
    const [port] = await freePorts(1);
    const options = [
      "--no-defaults",
      `--datadir=${data}`,
      `--socket=${socket}`,
      `--port=${port}`,
      "--bind-address=127.0.0.1",
      `--pid-file=${join(folder, "pid")}`,
      "--skip-name-resolve",
      ...user,
    ];
    server = spawn("mariadbd", options, { stdio: "ignore" });
    for (let attempt = 0; ; attempt++) {
      try {
        sql("SELECT 1");
        return { port: port!, sql, stop };
      } catch (error) {
        if (attempt === 100 || server.exitCode !== null) throw error;
        await sleep(200);
      }
    }
  } catch (error) {
    await stop();
    throw error;
  }
}
