/** Waits until each of several peers confirms that it carried out an order, or is gone. */
export class Acknowledgements<P> {
  private turn = 0;
  private readonly open = new Map<number, { readonly peers: Set<P>; readonly done: () => void }>();

  /**
   * @param tell sends the order, with the number of its turn
   * @param timeoutMs after which a silent peer is no longer waited for
   */
  ask(peers: Iterable<P>, timeoutMs: number, tell: (turn: number) => void): Promise<void> {
    const turn = ++this.turn;
    return new Promise((done) => {
      setTimeout(() => this.end(turn), timeoutMs).unref();
      this.open.set(turn, { peers: new Set(peers), done });
      tell(turn);
      this.check(turn);
    });
  }

  acknowledge(peer: P, turn: number): void {
    this.open.get(turn)?.peers.delete(peer);
    this.check(turn);
  }

  gone(peer: P): void {
    for (const turn of this.open.keys()) this.acknowledge(peer, turn);
  }

  private check(turn: number): void {
    if (this.open.get(turn)?.peers.size === 0) this.end(turn);
  }

  private end(turn: number): void {
    this.open.get(turn)?.done();
    this.open.delete(turn);
  }
}
