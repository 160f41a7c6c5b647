/** Waits until each of several peers confirms that it carried out an order, or answered a question, or is gone. */
export class Acknowledgements<P, A = undefined> {
  private turn = 0;
  private readonly open = new Map<number, Open<P, A>>();

  /**
   * @param tell sends the order, with the number of its turn
   * @param timeoutMs after which a silent peer is no longer waited for
   * @returns the answers of those that gave one
   */
  ask(peers: Iterable<P>, timeoutMs: number, tell: (turn: number) => void): Promise<ReadonlyMap<P, A>> {
    const turn = ++this.turn;
    return new Promise((done) => {
      setTimeout(() => this.end(turn), timeoutMs).unref();
      this.open.set(turn, { peers: new Set(peers), answers: new Map(), done });
      tell(turn);
      this.check(turn);
    });
  }

  acknowledge(peer: P, turn: number, answer?: A): void {
    const asked = this.open.get(turn);
    if (asked?.peers.delete(peer) === true && answer !== undefined) asked.answers.set(peer, answer);
    this.check(turn);
  }

  gone(peer: P): void {
    for (const turn of this.open.keys()) this.acknowledge(peer, turn);
  }

  private check(turn: number): void {
    if (this.open.get(turn)?.peers.size === 0) this.end(turn);
  }

  private end(turn: number): void {
    const asked = this.open.get(turn);
    this.open.delete(turn);
    asked?.done(asked.answers);
  }
}

interface Open<P, A> {
  readonly peers: Set<P>;
  readonly answers: Map<P, A>;
  readonly done: (answers: ReadonlyMap<P, A>) => void;
}
