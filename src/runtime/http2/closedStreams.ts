/** The streams that were closed last, and by which side: frames already on their way are not the client's fault. */
export class ClosedStreams {
  private readonly ids = new Int32Array(256);
  private at = 0;

  /** @param here whether this side reset it */
  add(id: number, here: boolean): void {
    this.ids[this.at] = here ? -id : id;
    this.at = (this.at + 1) & 0xff;
  }

  /** What became of a stream: undefined if it is long gone, or was never opened. */
  fate(id: number): "reset here" | "closed" | undefined {
    if (this.ids.includes(-id)) return "reset here";
    return this.ids.includes(id) ? "closed" : undefined;
  }
}
