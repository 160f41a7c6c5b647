import type { QuiesceTerms, SeenPauses } from "../../dispatch/pauses.js";

/** The pauses in force, as a master reports them. Times are milliseconds since 1970. */
export interface ListedPauses {
  readonly maintenance: readonly ListedMaintenance[];
  /** A command runs under `portico quiesce`, or waits for requests to end. */
  readonly quiesce?: ListedQuiesce;
}

export interface ListedMaintenance {
  /** Name of the site; undefined for all. */
  readonly site?: string | undefined;
  readonly since: number;
  readonly until?: number | undefined;
  readonly message?: string | undefined;
}

/** The requests in progress are those of all workers. */
export interface ListedQuiesce extends SeenPauses {
  /** When it began. */
  readonly since: number;
  /** Since when new requests are refused; undefined while they are served. */
  readonly refusesSince?: number | undefined;
  /** Whether it is about requests that read, too. */
  readonly reads: boolean;
  /** Name of the only site that it is about; undefined for all. */
  readonly site?: string | undefined;
  /** Workers that did not say what they have. */
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
  readonly begin?: QuiesceTerms & {
    /** How long requests are refused at most, while the command runs. */
    readonly limitMs: number;
  };
  /** Whether new requests are refused from now on; default: as before. Those of a new quiesce are served. */
  readonly refuses?: boolean;
}
