import type { HealthListenerConfig } from "../../../model/serving.js";
import type { MasterLog } from "../report/masterLog.js";
import { OwnListener } from "./ownListener.js";
import { type OwnServerResponse, type OwnRequest, textResponse } from "./ownServer.js";

/** Why the proxy is not ready. */
export type NotReady =
  | "stopping"
  | "no worker accepts connections"
  | `worker ${number | undefined} has not responded for ${string} s`;

/** The health listener. */
export class Health extends OwnListener<HealthListenerConfig> {
  /** Since when something is wrong, as far as probes saw. */
  private wrongSince: number | undefined;

  /** @param notReady why no new requests should come; undefined if they should */
  constructor(
    private readonly notReady: () => NotReady | undefined,
    logs: Pick<MasterLog, "warn">,
  ) {
    super("healthListener", logs);
  }

  protected override respond({ path }: OwnRequest): OwnServerResponse | undefined {
    const reason = this.notReady();
    const isWrong = reason !== undefined && reason !== "stopping";
    this.wrongSince = isWrong ? (this.wrongSince ?? performance.now()) : undefined;
    if (path === "/readyz")
      return reason === undefined ? textResponse(200, "ready") : textResponse(503, reason);
    if (path !== "/healthz") return undefined;
    const wrongMs = this.wrongSince === undefined ? 0 : performance.now() - this.wrongSince;
    return isWrong && wrongMs > WRONG_MS ? textResponse(503, reason) : textResponse(200, "ok");
  }
}

/** Longer than workers get for their start, than the master waits before it starts one again, and than for a hung one. */
const WRONG_MS = 60_000;
