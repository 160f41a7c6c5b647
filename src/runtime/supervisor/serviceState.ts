import { type Problem, problem, type ProxyConfig } from "../../model/serving.js";
import type { ControlOutcome } from "./control.js";
import type { MasterLog } from "./masterLog.js";
import { problemLine, statusText } from "./masterReport.js";
import { SystemdNotify, type SystemdState } from "./systemdNotify.js";

/** What the service's state is made of. */
export interface Serving {
  readonly config: ProxyConfig;
  readonly generation: number;
  /** How many older generations and masters are still finishing requests. */
  readonly finishing: number;
}

/** The state of the service, as systemd and people are told: by the main process, and by no other. */
export class ServiceState {
  /** Whether this is the service's main process. */
  isMain = false;
  /** Why the last reload or upgrade failed, if it did. */
  private lastFailure: string | undefined;
  private readonly systemd: SystemdNotify;

  /**
   * @param serving what is said of the service now; undefined if another process speaks for it
   * @param onRefused is told of what was refused
   */
  constructor(
    private readonly logs: Pick<MasterLog, "write" | "refuse">,
    private readonly serving: () => Serving | undefined,
    private readonly onRefused: (verdict: string, problems: readonly Problem[]) => void,
  ) {
    this.systemd = new SystemdNotify(process.env, (message) => logs.write("warn", message));
  }

  /** What another master needs in its environment to speak for the same service. */
  get environment(): NodeJS.ProcessEnv {
    return this.systemd.environment;
  }

  notify(state: SystemdState): Promise<void> {
    const serving = this.isMain ? this.serving() : undefined;
    if (serving === undefined) return Promise.resolve();
    const STATUS = statusText({ ...serving, lastFailure: this.lastFailure });
    return this.systemd.notify({ STATUS, ...state });
  }

  /** A reload or an upgrade was asked for and is refused. */
  refuse(verdict: string, problems: readonly Problem[]): ControlOutcome {
    const [first] = problems;
    this.lastFailure = `${verdict.split(",")[0]}: ${problemLine(first!)}`;
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
