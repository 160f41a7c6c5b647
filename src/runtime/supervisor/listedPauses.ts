/** The pauses in force, as a master reports them. Times are milliseconds since 1970. */
export interface ListedPauses {
  readonly maintenance: readonly ListedMaintenance[];
  /** A command runs under `portico quiesce`, or waits for requests to end. */
  readonly quiesce?: ListedQuiesce;
}

export interface ListedMaintenance {
  /** Name of the virtual server; undefined for all. */
  readonly server?: string | undefined;
  readonly since: number;
  readonly until?: number | undefined;
  readonly message?: string | undefined;
}

export interface ListedQuiesce {
  readonly since: number;
  /** Whether requests that read are refused, too. */
  readonly reads: boolean;
  /** Requests in progress that the command waits for. */
  readonly writes: number;
  /** Workers that did not say how many they have. */
  readonly silent: number;
}

/** Which maintenance a user wants. */
export interface BeginMaintenance {
  /** Milliseconds since 1970; default: until it is ended by command. */
  readonly until?: number | undefined;
  /** Shown to clients that are refused. */
  readonly message?: string | undefined;
}

/** Begins a quiesce, or renews it: without renewal it ends soon. */
export interface QuiesceRequest {
  /** Random, so that a command ends only the quiesce that it began. */
  readonly id: string;
  /** Without it, the request only renews. */
  readonly begin?: { readonly reads: boolean; readonly limitMs: number };
}
