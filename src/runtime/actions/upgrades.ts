import { FirstOfName, forwardedUpgrade } from "../../model/serving.js";
import type { Exchange } from "../exchange/exchange.js";

/** The upgrades that a route forwards. */
export class Upgrades {
  private readonly dropped = new FirstOfName();

  constructor(private readonly allowed: readonly string[]) {}

  /** The protocol of a request's upgrade, as the route writes it; undefined if there is none to forward. */
  of(exchange: Exchange): string | undefined {
    const { upgrade } = exchange.request;
    if (upgrade === undefined) return undefined;
    const forwarded = forwardedUpgrade(this.allowed, upgrade);
    if (forwarded === undefined && this.dropped.isFirst(upgrade)) {
      const message = `the upgrade to "${upgrade}" is dropped; if the application needs it, add it to \`upgrades\` of the route`;
      exchange.route?.errorLog.write("info", message, exchange);
    }
    return forwarded;
  }
}
