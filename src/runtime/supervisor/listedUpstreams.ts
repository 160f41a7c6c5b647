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

/** Which server a request of a user's means. */
export interface NamedServer {
  readonly name: string;
  readonly server: string;
}
