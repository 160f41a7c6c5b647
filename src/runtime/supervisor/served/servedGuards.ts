import { isIP } from "node:net";
import { problem, type ProxyConfig } from "../../../model/serving.js";
import { type Ban, LogInJudge } from "../../logIns/judge.js";
import { newKey } from "../../logIns/tried.js";
import type { GuardsState, LogInNews } from "../../logIns/workerGuards.js";
import { clientKey } from "../../rates/clientKey.js";
import { hostNow } from "../../rates/hostClock.js";
import type { LoadedConfig } from "../../load/loadConfig.js";
import type { ControlOutcome } from "../control/control.js";
import type { ListedBan } from "../control/listedBans.js";
import type { Supervision } from "../processes/supervision.js";
import type { MasterLog } from "../report/masterLog.js";

/**
 * Guards against guessing: each worker judges by itself, and tells the master what log-ins came to, which tells the
 * others. What is known outlasts a worker, a reload and an upgrade, but not the service. Between workers it is late by
 * milliseconds: of log-ins at the same moment, each worker may let through as many as one address has left.
 */
export class ServedGuards {
  private key = newKey();
  private readonly judges = new Map<string, LogInJudge>();

  constructor(
    private readonly host: {
      readonly supervised: Pick<Supervision, "broadcast">;
      loaded(): LoadedConfig;
    },
    private readonly logs: Pick<MasterLog, "write">,
  ) {}

  get state(): GuardsState {
    return {
      key: this.key,
      states: Object.fromEntries([...this.judges].map(([name, { state }]) => [name, state])),
    };
  }

  /** Continues with what another master knows. */
  adopt(state: GuardsState | undefined): void {
    if (state === undefined) return;
    this.key = state.key;
    for (const [name, known] of Object.entries(state.states)) {
      // The config with its limits is read later.
      const judge = new LogInJudge(NO_LIMITS);
      judge.adopt(known);
      this.judges.set(name, judge);
    }
  }

  /** The guards of this config apply from now on; others are forgotten. */
  use({ passwordGuards = {} }: ProxyConfig): void {
    for (const name of this.judges.keys()) if (passwordGuards[name] === undefined) this.judges.delete(name);
    for (const [name, limits] of Object.entries(passwordGuards)) {
      const judge = this.judges.get(name);
      if (judge === undefined) this.judges.set(name, new LogInJudge(limits));
      else judge.limits = limits;
    }
  }

  /** A worker saw a log-in. */
  heard(news: LogInNews): void {
    const { guard, ...result } = news;
    const judge = this.judges.get(guard);
    const now = hostNow();
    const before = judge?.ban(result.address, now);
    judge?.learn(result, now);
    this.host.supervised.broadcast({ type: "logIn", news });
    const ban = judge?.ban(result.address, now);
    if (ban?.reason !== "closed" || before?.reason === "closed") return;
    const seconds = Math.ceil(ban.leftMs / 1_000);
    this.logs.write(
      "warn",
      `passwordGuard="${guard} closed": ${this.shown(ban.address)} gets no new secret tried for ${seconds} s: ${reasonOf(ban)}`,
    );
  }

  list(): ControlOutcome {
    const bans = [...this.judges].flatMap(([guard, judge]) =>
      judge.bans(hostNow()).map(({ leftMs, ...ban }): ListedBan => {
        return { ...ban, guard, until: Math.round(Date.now() + leftMs) };
      }),
    );
    const message =
      bans.length === 0 ? "no address is refused" : `addresses that are refused: ${bans.length}`;
    return { ok: true, value: { message, warnings: [], bans } };
  }

  /** Forgets all wrong secrets of an address. */
  unban(given: string): ControlOutcome {
    const { passwordGuards = {} } = this.host.loaded().config;
    const why = [...this.judges].flatMap(([guard, judge]) => {
      const prefix = passwordGuards[guard]?.ipv6Prefix ?? 64;
      const address = isIP(given) === 0 ? given : clientKey(given, prefix);
      const ban = judge.ban(address, hostNow());
      if (ban === undefined) return [];
      judge.unban(address);
      this.host.supervised.broadcast({ type: "unban", guard, address });
      return [`${guard}: ${ban.reason}, ${reasonOf(ban)}`];
    });
    if (why.length === 0) {
      const message = "is not refused by any guard";
      return {
        ok: false,
        problems: [problem("control.not-banned", "ADDRESS", message, { received: given })],
      };
    }
    const text = `may log in again (${why.join("; ")})`;
    this.logs.write("warn", `portico unban: ${this.shown(given)} ${text}`);
    return { ok: true, value: { message: `${given} ${text}`, warnings: [] } };
  }

  /** Logs show addresses only if the config lets them. */
  private shown(address: string): string {
    return this.host.loaded().config.logs.clientAddress === "full" ? address : "an address";
  }
}

const reasonOf = ({ wrong }: Pick<Ban, "wrong">): string => `distinct wrong secrets: ${wrong}`;

const NO_LIMITS = { wrongSecretsMax: 40, slowAfter: 40, slowMs: 0, windowMs: 0, closeMs: 0 };
