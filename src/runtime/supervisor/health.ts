import type { HealthListenerConfig } from "../../model/serving.js";
import type { MasterLog } from "./masterLog.js";
import { OwnListener } from "./ownListener.js";
import { type Response, type Asked, textResponse } from "./ownServer.js";

/** Why the proxy is not ready. */
export type NotReady = "stopping" | "no worker accepts connections";

/** The health listener. */
export class Health extends OwnListener<HealthListenerConfig> {
  private nobodySince: number | undefined;

  /** @param notReady why no new requests should come; undefined if they should */
  constructor(
    private readonly notReady: () => NotReady | undefined,
    logs: Pick<MasterLog, "warn">,
  ) {
    super("healthListener", logs);
  }

  protected override respond({ path }: Asked): Response | undefined {
    const reason = this.notReady();
    this.nobodySince =
      reason === "no worker accepts connections" ? (this.nobodySince ?? performance.now()) : undefined;
    if (path === "/readyz")
      return reason === undefined ? textResponse(200, "ready") : textResponse(503, reason);
    if (path !== "/healthz") return undefined;
    const idleMs = this.nobodySince === undefined ? 0 : performance.now() - this.nobodySince;
    return idleMs > NOBODY_MS ? textResponse(503, "no worker accepts connections") : textResponse(200, "ok");
  }
}

/** Longer than workers get for their start, and than the master waits before it starts one again. */
const NOBODY_MS = 60_000;
