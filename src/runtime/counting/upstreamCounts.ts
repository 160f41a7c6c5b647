import type { Slots } from "./slots.js";

/** Counts what happens with one server of an upstream. */
export class UpstreamCounts {
  private readonly connects: number;
  /** Places of failures, by their names. */
  private readonly failures = new Map<string, number>();

  /** @param labels the names of the upstream and of the server */
  constructor(
    private readonly slots: Slots,
    readonly labels: readonly [upstream: string, server: string],
  ) {
    this.connects = slots.place("upstreamConnects", labels);
  }

  connected(): void {
    this.slots.add(this.connects);
  }

  failed(token: string): void {
    let at = this.failures.get(token);
    if (at === undefined) {
      at = this.slots.place("upstreamFailures", [...this.labels, token]);
      this.failures.set(token, at);
    }
    this.slots.add(at);
  }
}
