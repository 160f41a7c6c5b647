import { LogInRules, type ProxyConfig, type VirtualServerConfig } from "../../model/serving.js";
import type { RouteAction } from "../exchange/exchange.js";
import type { WorkerCounts } from "../counting/workerCounts.js";
import { hostNow } from "../rates/hostClock.js";
import { LogInAction, WorkerGuard } from "./logInAction.js";
import type { JudgeState, LogInResult } from "./judge.js";
import { newKey, SecretHashes } from "./tried.js";

/** What all workers know of log-ins: a worker begins with it. */
export interface GuardsState {
  /** The key of all hashes, in base64; random for each start of the service, and on no disk. */
  readonly key: string;
  /** By the name of the guard. */
  readonly states: Readonly<Record<string, JudgeState>>;
}

/** The result of a log-in, which one worker saw. */
export interface LogInNews extends LogInResult {
  readonly guard: string;
}

/** The guards against guessing of a worker. */
export class WorkerGuards {
  private readonly hashes = new SecretHashes(newKey());
  private readonly guards: ReadonlyMap<string, WorkerGuard>;
  private readonly rules = new Map<VirtualServerConfig, LogInRules>();
  /** Tells the other workers. */
  onNews: (news: LogInNews) => void = () => undefined;

  constructor({ passwordGuards = {} }: Pick<ProxyConfig, "passwordGuards">, counts: WorkerCounts) {
    const tell = (guard: string) => (result: LogInResult) => this.onNews({ ...result, guard });
    this.guards = new Map(
      Object.entries(passwordGuards).map(([name, config]) => [
        name,
        new WorkerGuard(name, config, this.hashes, tell(name), (reason) => counts.refusedLogIn(name, reason)),
      ]),
    );
  }

  /** The action of a route, behind the guard of its virtual server; the same one if there is none. */
  before(server: VirtualServerConfig, action: RouteAction): RouteAction {
    const { passwordGuard, logIns } = server;
    const guard = this.guards.get(passwordGuard ?? "");
    if (guard === undefined || logIns === undefined) return action;
    const rules = this.rules.get(server) ?? new LogInRules(logIns);
    this.rules.set(server, rules);
    return new LogInAction(action, rules, guard);
  }

  begin({ key, states }: GuardsState): void {
    this.hashes.use(key);
    for (const [name, { judge }] of this.guards) {
      const state = states[name];
      if (state !== undefined) judge.adopt(state);
    }
  }

  learn({ guard, ...result }: LogInNews): void {
    this.guards.get(guard)?.judge.learn(result, hostNow());
  }

  /** Forgets an address of a guard. */
  unban(guard: string, address: string): void {
    this.guards.get(guard)?.judge.unban(address);
  }
}
