import { spawn } from "node:child_process";
import { printableValue } from "../../model/text/printable.js";
import { challengeName, type DnsProofsOf } from "../../model/serving.js";
import { credentials } from "../load/credentials.js";
import { systemReason } from "../files/systemReason.js";
import { checkProgram, FileRefused } from "../files/trustedFile.js";
import { AcmeError } from "./acmeError.js";
import type { AcmeHost } from "./acmeHost.js";
import type { TxtChange, TxtRecord } from "./dnsMessage.js";
import type { DnsProvider, Proof } from "./dnsProvider.js";

type ProgramConfig = DnsProofsOf<"program">;

/** Has a program of the administrator's write records, as the user that runs the proxy. */
export class DnsProgram implements DnsProvider {
  constructor(
    private readonly config: ProgramConfig,
    private readonly log: AcmeHost["log"],
  ) {}

  get nameServers() {
    return this.config.nameServers;
  }

  records(proofs: readonly Proof[]): Promise<TxtRecord[]> {
    const { alias } = this.config;
    return Promise.resolve(proofs.map(({ name, value }) => ({ name: alias ?? challengeName(name), value })));
  }

  /**
   * Records are written one by one: a provider may read all records of a name, and write them back with a further record.
   * All records are removed that can be, whatever became of the others, unless a call was killed: the next call would hang,
   * too.
   */
  async write(change: TxtChange, records: readonly TxtRecord[], signal: AbortSignal): Promise<void> {
    const { command, credentialFile } = this.config;
    await refuseUnsafe(command);
    const find = await credentials();
    const secret = credentialFile && ((await find(credentialFile)) ?? credentialFile);
    const failures: unknown[] = [];
    for (const { name, value } of records)
      await this.call([change, name, value], secret, signal).catch((error: unknown) => {
        if (change === "present" || error instanceof Killed) throw error;
        failures.push(error);
      });
    if (failures.length > 0) throw failures[0];
  }

  private async call(
    args: readonly string[],
    secret: string | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    signal.throwIfAborted();
    const { command } = this.config;
    const began = performance.now();
    const { why, output, killed } = await run(this.config, args, secret, signal);
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    const said = output === "" ? "" : `: ${output}`;
    const call = `${command} ${args.join(" ")}`;
    const as = `after ${seconds} s, as user ${process.geteuid?.() ?? ""}${said}`;
    if (why === undefined) return this.log("info", `${call}: done ${as}`);
    this.log("warn", `${call}: ${why} ${as}`);
    // The error is what a program says last.
    const last = output.length > LAST_WORDS_MAX ? `…${output.slice(-LAST_WORDS_MAX)}` : output;
    const detail = `${call} ${why}${last === "" ? "" : `: ${last}`}`;
    throw killed ? new Killed("dnsUpdate", detail) : new AcmeError("dnsUpdate", detail);
  }
}

/** A call did not end by itself. */
class Killed extends AcmeError {}

/** A user who can replace the program could run any code as this process. A setuid program changes the user. */
async function refuseUnsafe(command: string): Promise<void> {
  try {
    await checkProgram(command);
  } catch (error) {
    const why =
      error instanceof FileRefused
        ? `${error.message}: ${error.fix}`
        : `cannot be run ${systemReason(error as Error)}`;
    throw new AcmeError("dnsUpdate", `${command} ${why}`);
  }
}

interface ProgramResult {
  /** What went wrong; undefined if nothing did. */
  readonly why: string | undefined;
  /** The end of the program's output, on one line. */
  readonly output: string;
  readonly killed: boolean;
}

function run(
  { command, timeoutMs }: ProgramConfig,
  args: readonly string[],
  secret: string | undefined,
  signal: AbortSignal,
): Promise<ProgramResult> {
  const { PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" } = process.env;
  const env = { PATH, LANG: "C.UTF-8", ...(secret === undefined ? {} : { PORTICO_CREDENTIAL_FILE: secret }) };
  return new Promise((resolve) => {
    // A process group, so that a kill also ends the child processes of the program.
    const child = spawn(command, args, { env, cwd: "/", stdio: ["ignore", "pipe", "pipe"], detached: true });
    let killed: string | undefined;
    const kill = (why: string): void => {
      killed ??= why;
      try {
        if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
      } catch {
        // It has ended.
      }
      // A process that has left the group may hold the pipes open.
      child.stdout.destroy();
      child.stderr.destroy();
    };
    const stop = (): void => kill("was killed, as portico stops");
    const timer = setTimeout(() => kill(`was killed: it took longer than ${timeoutMs / 1000} s`), timeoutMs);
    signal.addEventListener("abort", stop);
    let output = "";
    const read = (chunk: Buffer): void => void (output = (output + chunk.toString()).slice(-OUTPUT_MOST));
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    const end = (why: string | undefined): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
      resolve({
        why: killed ?? why,
        output: printableValue(output.trim()),
        killed: killed !== undefined,
      });
    };
    child.on("error", (error) => end(`cannot be run ${systemReason(error)}`));
    child.on("exit", () => setTimeout(() => (child.stdout.destroy(), child.stderr.destroy()), LAST_WORDS_MS));
    child.on("close", (code, by) =>
      end(code === 0 ? undefined : `ended with ${by === null ? `status ${code}` : by}`),
    );
  });
}

const OUTPUT_MOST = 2000;
/** In the reason of a failed order, of which 300 characters are shown. */
const LAST_WORDS_MAX = 120;
const LAST_WORDS_MS = 500;
