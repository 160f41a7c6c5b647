import { execFile } from "node:child_process";
import { type Problem, problem, type ProxyConfig } from "../../model/serving.js";
import type { ControlOutcome } from "./control/control.js";
import type { MasterLog } from "./report/masterLog.js";
import { problemLine, statusText } from "./report/masterReport.js";
import { Queue } from "../queue.js";

/** The data of the service's state. */
export interface Serving {
  readonly config: ProxyConfig;
  readonly generation: number;
  /** How many older generations and masters are still finishing requests. */
  readonly finishing: number;
}

/** Reports the state of the service to systemd and people. Only the main process does so. */
export class ServiceState {
  /** Whether this is the service's main process. */
  isMain = false;
  /** Why the last reload or upgrade failed, if it did. */
  private lastFailure: string | undefined;
  private readonly systemd: SystemdNotify;

  /**
   * @param serving the current state; undefined if another process reports it
   * @param onRefused called with each refused reload or upgrade
   */
  constructor(
    private readonly logs: Pick<MasterLog, "write" | "refuse">,
    private readonly serving: () => Serving | undefined,
    private readonly onRefused: (verdict: string, problems: readonly Problem[]) => void,
  ) {
    this.systemd = new SystemdNotify(process.env, (message) => logs.write("warn", message));
  }

  /** Environment variables with which another master can report the same service's state. */
  get environment(): NodeJS.ProcessEnv {
    return this.systemd.environment;
  }

  notify(state: SystemdState): Promise<void> {
    const serving = this.isMain ? this.serving() : undefined;
    if (serving === undefined) return Promise.resolve();
    const STATUS = statusText({ ...serving, lastFailure: this.lastFailure });
    return this.systemd.notify({ STATUS, ...state });
  }

  /** A requested reload or upgrade is refused. */
  refuse(verdict: string, problems: readonly Problem[]): ControlOutcome {
    const [first] = problems;
    this.lastFailure = `${verdict.split(";")[0]}: ${problemLine(first!)}`;
    this.logs.refuse(verdict, problems);
    this.onRefused(verdict, problems);
    return { ok: false, problems };
  }

  /** A reload went well. */
  succeeded(): void {
    this.lastFailure = undefined;
  }
}

/** Why nothing is changed any more. */
export function stopped(what: string): Problem {
  return problem("serve.stopping", "", `cannot ${what}: portico is stopping`);
}

/** The state that a service reports, by the names of sd_notify(3). */
interface SystemdState {
  /** The start, or a reload, is over. */
  readonly READY?: 1;
  readonly RELOADING?: 1;
  readonly STOPPING?: 1;
  /** A line for people: `systemctl status` shows it. */
  readonly STATUS?: string;
  /** The process that speaks for the service from now on. */
  readonly MAINPID?: number;
}

/**
 * Reports the service's state to systemd, if systemd asks for it (`Type=notify`); otherwise does nothing.
 *
 * Node has no Unix datagram sockets, so `systemd-notify` sends the messages, for which the unit needs
 * `NotifyAccess=all`. They arrive in the order in which they were sent.
 */
class SystemdNotify {
  private readonly socket: string | undefined;
  private readonly messages = new Queue();
  private complained = false;

  /**
   * @param env has systemd's variable for its socket, which is removed, as workers have nothing to report
   * @param complain is called once if nothing can be sent
   */
  constructor(
    env: NodeJS.ProcessEnv,
    private readonly complain: (message: string) => void,
  ) {
    this.socket = env["NOTIFY_SOCKET"] || undefined;
    delete env["NOTIFY_SOCKET"];
  }

  /** Environment variables with which another master can reach the same service manager. */
  get environment(): NodeJS.ProcessEnv {
    return this.socket === undefined ? {} : { NOTIFY_SOCKET: this.socket };
  }

  /** Resolves when systemd has taken it, or cannot; never rejects. */
  notify(state: SystemdState): Promise<void> {
    if (this.socket === undefined) return Promise.resolve();
    const lines = Object.entries(state).map(([name, value]) => `${name}=${oneLine(String(value))}`);
    return this.messages.do(() => this.send(lines));
  }

  private send(lines: readonly string[]): Promise<void> {
    const options = { env: { ...process.env, ...this.environment }, timeout: SEND_MS };
    return new Promise((resolve) => {
      execFile("systemd-notify", lines, options, (error) => {
        if (error !== null && !this.complained) {
          this.complained = true;
          this.complain(
            `the state of the service cannot be reported to systemd: systemd-notify: ${error.message.trim()}`,
          );
        }
        resolve();
      });
    });
  }
}

/** systemd responds within milliseconds, unless it is in trouble itself. */
const SEND_MS = 10_000;

const oneLine = (text: string): string => text.replace(/[\u0000-\u001f\u007f]+/g, " ");
