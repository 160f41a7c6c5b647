import { hkdfSync, randomBytes } from "node:crypto";
import type { Problem, TicketKeysConfig } from "../../model/serving.js";
import type { LoadedForMaster } from "../load/loadConfig.js";
import { credentials } from "../load/credentials.js";
import { FileWatch } from "../load/fileWatch.js";
import { loadTicketSecret } from "../load/ticketSecret.js";
import type { Handover } from "./processes/handover.js";
import type { MasterLog } from "./report/masterLog.js";
import { problemLine } from "./report/masterReport.js";

/**
 * The keys of the workers' session tickets: this master's own, or those that it shares with other hosts or pods.
 *
 * Shared ones are derived from a secret and the number of the period that the clock is in, so all hosts with the secret
 * change keys at the same moment without any communication. Workers get the key of the period alone.
 */
export class TicketKeys {
  /** Made here, or by the master before this one. */
  private own = newKeys();
  /** The end of the keys by the clock, since a runtime that is often replaced would never get to the end of a timer. */
  private ownUntil = Date.now() + OWN_MS;
  private shared: Shared | undefined;
  private readonly watch = new FileWatch();
  private ownTimer: NodeJS.Timeout | undefined;
  private periodTimer: NodeJS.Timeout | undefined;

  /** @param install has the workers use these keys from now on */
  constructor(
    private readonly install: (keys: string) => void,
    private readonly logs: Pick<MasterLog, "write">,
  ) {}

  /** The keys for the next master, which reads the shared secret itself. */
  get passable(): Pick<Handover, "ticketKeys" | "ticketKeysUntil"> {
    return { ticketKeys: this.own, ticketKeysUntil: this.ownUntil };
  }

  /** Continues with the keys of the previous master. */
  adopt({ ticketKeys, ticketKeysUntil }: Handover): void {
    this.own = ticketKeys;
    this.ownUntil = ticketKeysUntil;
  }

  /** The keys for a config, as of now. */
  for(loaded: LoadedForMaster): string {
    const shared = sharedBy(loaded);
    return shared === undefined ? this.own : keysOf(shared);
  }

  /** From now on changes the keys of the workers of this config in time. */
  async begin(loaded: LoadedForMaster): Promise<void> {
    this.ownTimer ??= this.timerOfOwn();
    clearTimeout(this.periodTimer);
    this.shared = sharedBy(loaded);
    // The workers may have been started in the period before.
    if (this.shared !== undefined) this.followClock(this.shared, "");
    await this.watch.begin(this.watched());
  }

  stop(): void {
    clearTimeout(this.ownTimer);
    clearTimeout(this.periodTimer);
    this.watch.stop();
  }

  private timerOfOwn(): NodeJS.Timeout {
    // A clock that was set back makes no key last longer.
    const left = Math.min(Math.max(this.ownUntil - Date.now(), 0), OWN_MS);
    return setTimeout(() => this.renewOwn(), left).unref();
  }

  private renewOwn(): void {
    this.own = newKeys();
    this.ownUntil = Date.now() + OWN_MS;
    this.ownTimer = this.timerOfOwn();
    if (this.shared === undefined) this.install(this.own);
  }

  private followClock(shared: Shared, before: string): void {
    const keys = keysOf(shared);
    if (keys !== before) this.install(keys);
    const left = shared.rotateMs - (Date.now() % shared.rotateMs);
    // A clock that is set while a timer runs does not change the timer.
    const timer = setTimeout(() => this.followClock(shared, keys), Math.min(left, CLOCK_MS));
    this.periodTimer = timer.unref();
  }

  /** The file of the secret, unless systemd passes it: then a reload hands over a new one. */
  private async watched() {
    const { shared } = this;
    if (shared === undefined || (await (await credentials())(shared.file)) !== undefined) return [];
    const changed = (current: () => boolean): Promise<void> => this.take(shared, current);
    return [{ paths: [shared.file], changed }];
  }

  private async take(shared: Shared, current: () => boolean): Promise<void> {
    const { secret, problems, warnings } = await loadTicketSecret(shared, () => Promise.resolve(undefined));
    if (!current() || secret === this.shared?.secret) return;
    const label = `ticketKeys.file (${shared.file})`;
    const note = (verdict: string, p?: Problem): void =>
      this.logs.write(
        p === undefined ? "info" : "warn",
        `${label} ${verdict}${p === undefined ? "" : `: ${problemLine(p)}`}`,
      );
    if (secret === undefined)
      return note(
        "changed on disk; the new secret is refused, and the previous one stays in use",
        problems[0],
      );
    clearTimeout(this.periodTimer);
    this.shared = { ...shared, secret };
    this.followClock(this.shared, "");
    note("changed on disk and is in use", warnings[0]);
  }
}

interface Shared extends TicketKeysConfig {
  readonly secret: string;
}

function sharedBy({ config, ticketSecret }: LoadedForMaster): Shared | undefined {
  const { ticketKeys } = config;
  return ticketKeys === undefined ? undefined : { ...ticketKeys, secret: ticketSecret! };
}

function keysOf({ secret, rotateMs }: Shared): string {
  const period = Math.floor(Date.now() / rotateMs);
  const info = `portico ticket keys, period ${period} of ${rotateMs} ms`;
  return Buffer.from(hkdfSync("sha256", Buffer.from(secret, "base64"), "", info, KEY_BYTES)).toString(
    "base64",
  );
}

function newKeys(): string {
  return randomBytes(KEY_BYTES).toString("base64");
}

/** `tls.Server` takes this many bytes. */
const KEY_BYTES = 48;
/** A stolen ticket key then decrypts no more than half a day of recorded sessions. */
const OWN_MS = 12 * 3_600_000;
const CLOCK_MS = 30_000;
