import type { AskedStatus, StatusAnswer } from "../status/asked.js";

/** Questions of clients for the status, which the master answers: each with a deadline, and few at a time. */
export class StatusQuestions {
  private readonly open = new Map<number, (answer: StatusAnswer | undefined) => void>();
  private turn = 0;

  constructor(private readonly send: (turn: number, asked: AskedStatus) => void) {}

  /** Resolves with undefined if there are too many, or the master does not answer in time. */
  ask(asked: AskedStatus): Promise<StatusAnswer | undefined> {
    if (this.open.size >= OPEN_MAX) return Promise.resolve(undefined);
    const turn = ++this.turn;
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.answered(turn, undefined), ANSWER_MS);
      this.open.set(turn, (answer) => {
        clearTimeout(timer);
        resolve(answer);
      });
      this.send(turn, asked);
    });
  }

  /** A late answer is dropped. */
  answered(turn: number, answer: StatusAnswer | undefined): void {
    const done = this.open.get(turn);
    this.open.delete(turn);
    done?.(answer);
  }
}

const ANSWER_MS = 5_000;
const OPEN_MAX = 32;
