/** What workers tell each other about clients, through the master. All of it is JSON. */

/** Client, time of the first request by the host's clock, number of requests. */
export type UsedRequests = readonly (readonly [key: string, first: number, count: number])[];

/** Client, and the time until which its requests count. */
export type TimeNews = readonly (readonly [key: string, time: number])[];

/** Client, and how many requests it has in progress. */
export type RunningNews = readonly (readonly [key: string, count: number])[];

/** A worker's report about its clients since the last, by the limit's {@link rateId} or {@link runningId}. */
export interface LimitReport {
  readonly used: Readonly<Record<string, UsedRequests>>;
  readonly running: Readonly<Record<string, RunningNews>>;
}

/** What a worker should know: times of all workers together, and what the others have in progress. */
export interface LimitNews {
  readonly times: Readonly<Record<string, TimeNews>>;
  readonly running: Readonly<Record<string, RunningNews>>;
}

export const hasNews = ({ times, running }: LimitNews): boolean =>
  Object.keys(times).length + Object.keys(running).length > 0;
