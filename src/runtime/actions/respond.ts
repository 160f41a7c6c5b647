import type { RespondActionConfig, RouteConfig } from "../../model/index.js";
import { reasonPhrase } from "../reasonPhrases.js";
import type { Exchange, HeaderList } from "../exchange.js";
import type { Action } from "../routeRuntime.js";

/** Answers every method with a fixed status and body. */
export class RespondAction implements Action {
  private readonly status: number;
  private readonly reason: string;
  private readonly headers: HeaderList;
  private readonly body: Buffer;
  private readonly length: number;

  constructor(_route: RouteConfig, config: RespondActionConfig) {
    const bodiless = BODILESS.has(config.status);
    this.status = config.status;
    this.reason = reasonPhrase(config.status);
    this.body = Buffer.from(bodiless ? "" : config.body, "utf8");
    this.headers = Object.freeze(
      this.body.length === 0 ? [] : ["Content-Type", config.contentType],
    ) as HeaderList;
    // The length of a 304 is that of the answer it stands for (RFC 9110, 8.6), which nobody knows here.
    this.length = config.status === 304 ? -1 : this.body.length;
  }

  handle(exchange: Exchange): void {
    exchange.sendHead(this.status, this.reason, this.headers, this.length);
    if (this.body.length > 0 && exchange.request.method !== "HEAD") exchange.sendData(this.body);
    exchange.end();
  }
}

/** Statuses that never have a body (RFC 9110, 15.3.5, 15.3.6, 15.4.5). */
const BODILESS = new Set([204, 205, 304]);
