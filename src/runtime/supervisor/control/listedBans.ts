/** An address whose new secrets a guard refuses, as the control socket lists it. */
export interface ListedBan {
  /** As the guard counts it: an IPv6 address is a network. */
  readonly address: string;
  /** Name of the guard, which is the place that it was given at. */
  readonly guard: string;
  /** `slowed`: a new secret has to wait. `closed`: none is tried for longer. */
  readonly reason: "slowed" | "closed";
  /** Distinct wrong secrets that count; one that is tried for many accounts counts as several. */
  readonly wrong: number;
  /** When it ends, in milliseconds since 1970. */
  readonly until: number;
}
