/** An upstream that has several servers, or checks, as the workers of a master see it together. */
export interface ListedUpstream {
  readonly name: string;
  readonly servers: readonly ListedServer[];
}

export interface ListedServer {
  readonly url: string;
  readonly backup: boolean;
  /** Requests that it has, tunnels among them; those of workers that drain, too. */
  readonly inProgress: number;
  /** A command drained the server: it gets no new request. */
  readonly drained: boolean;
  /** The server's checks fail: it gets no request, unless it is the only server. */
  readonly down: boolean;
  /** Whether a check of it has ended. */
  readonly checked: boolean;
  /** How many workers leave it out because of failed requests. */
  readonly outIn: number;
  /** How many workers send it requests only because requests failed at all other servers, too. */
  readonly ignoredIn: number;
  /** Why it is down or left out, where that is known. */
  readonly why?: string;
}

/** Whether it is up, by the orders and checks of the master and by its workers: the one answer for all who only ask. */
export function stateOf({
  drained,
  down,
  outIn,
  ignoredIn,
}: ListedServer): "drained" | "down" | "out" | "failing" | "up" {
  if (drained) return "drained";
  if (down) return "down";
  if (outIn > 0) return "out";
  return ignoredIn > 0 ? "failing" : "up";
}

/** Which server a request of a user's means. */
export interface NamedServer {
  readonly name: string;
  readonly server: string;
}
