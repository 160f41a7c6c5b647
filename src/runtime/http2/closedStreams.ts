/** Where a stream stands that is not open (RFC 9113, 5.1 and 6.8). */
export const enum Standing {
  /** The client has not opened it, or never can. */
  Idle,
  /** The client opened a later one, or this one is closed for so long that nobody knows. */
  Skipped,
  /** Closed by the client: it ended its request and has the answer, or gave it up. */
  Ended,
  /** Reset by this side: what the client sent before it knew is not its fault. */
  Reset,
  /** Above the last stream of our GOAWAY. */
  Refused,
}

/** The streams that were closed last, and by which side: those that ended do not push out those that were reset. */
export class ClosedStreams {
  private readonly resets = new Int32Array(192);
  private readonly ended = new Int32Array(64);
  private resetsAt = 0;
  private endedAt = 0;
  /** Highest stream that was reset here and is no longer among them: any below it may have been. */
  private forgotten = 0;

  /** @param here whether this side reset it */
  add(id: number, here: boolean): void {
    if (!here) {
      this.ended[this.endedAt] = id;
      this.endedAt = (this.endedAt + 1) % this.ended.length;
      return;
    }
    this.forgotten = Math.max(this.forgotten, this.resets[this.resetsAt]!);
    this.resets[this.resetsAt] = id;
    this.resetsAt = (this.resetsAt + 1) % this.resets.length;
  }

  /** Of a stream that is not open, up to the last one that was. */
  standing(id: number): Standing.Skipped | Standing.Ended | Standing.Reset {
    if (this.resets.includes(id)) return Standing.Reset;
    if (this.ended.includes(id)) return Standing.Ended;
    return id <= this.forgotten ? Standing.Reset : Standing.Skipped;
  }
}
