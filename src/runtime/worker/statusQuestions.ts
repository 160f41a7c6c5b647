import type { AskedStatus, StatusResponse } from "../status/asked.js";

/** Questions of clients for the status, which the master answers: each with a deadline, and few at a time. */
export class StatusQuestions {
  private readonly open = new Map<number, (response: StatusResponse | undefined) => void>();
  private turn = 0;

  constructor(private readonly send: (turn: number, asked: AskedStatus) => void) {}

  /** Resolves with undefined if there are too many, or the master does not answer in time. */
  ask(asked: AskedStatus): Promise<StatusResponse | undefined> {
    if (this.open.size >= OPEN_MAX) return Promise.resolve(undefined);
    const turn = ++this.turn;
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.answered(turn, undefined), RESPONSE_MS);
      this.open.set(turn, (response) => {
        clearTimeout(timer);
        resolve(response);
      });
      this.send(turn, asked);
    });
  }

  /** A late response is dropped. */
  answered(turn: number, response: StatusResponse | undefined): void {
    const done = this.open.get(turn);
    this.open.delete(turn);
    done?.(response);
  }
}

const RESPONSE_MS = 5_000;
const OPEN_MAX = 32;
