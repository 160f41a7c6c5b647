import * as z from "zod";
import { cleaned, type Notice, type SentNotice } from "./notice.js";

/** All that a Date can be (ECMAScript, 21.4.1.1). */
const time = z.number().min(-8.64e15).max(8.64e15);

/** Times here are in milliseconds since 1970: a board outlasts its process. */
const entry = z.object({
  key: z.string().max(400),
  what: z.string().max(700),
  fix: z.string().max(700),
  /** Whether the problem continues. */
  open: z.boolean(),
  since: time,
  /** Whether it was sent since it began. */
  told: z.boolean(),
  /** When it was last sent; 0 for never. */
  toldAt: time,
  /** How long it is not sent again after that. */
  quietMs: z.number(),
  /** Whether the end of a sent problem, or an event, is still to be sent. */
  ended: z.boolean(),
});

type BoardEntry = z.output<typeof entry>;

const board = z.array(entry).max(1_000);

/** The part of a board that survives a restart; contains no secrets. */
export type KeptBoard = readonly BoardEntry[];

/**
 * Decides which notices are sent and when: those of a minute in one message, none twice within `repeatMs`, and the end
 * of each problem that was sent.
 *
 *     raise ──> open ──a minute──> sent ──repeatMs──> sent again
 *                 │                  └──resolve──> "resolved" ──> quiet: 10 minutes, doubled each time up to repeatMs
 *                 └──resolve──> forgotten
 */
export class NoticeBoard {
  private readonly entries = new Map<string, BoardEntry>();
  /** Since when a notice waits to be sent. */
  private waitingSince: number | undefined;

  constructor(
    private repeatMs: number,
    private readonly digestMs = DIGEST_MS,
  ) {}

  /** From now on repeats after another time. */
  repeatAfter(ms: number): void {
    this.repeatMs = ms;
  }

  /** Whether nothing is wrong at the moment. */
  get isCalm(): boolean {
    return ![...this.entries.values()].some(({ open }) => open);
  }

  /** @param notices all current problems of one kind: open ones of that kind that are not listed are resolved */
  observe(kind: string, notices: readonly Notice[], now: number): void {
    for (const notice of notices) this.raise(notice, now);
    const keys = new Set(notices.map((one) => cleaned(one).key));
    for (const { key, open } of [...this.entries.values()])
      if (open && key.startsWith(`${kind}/`) && !keys.has(key)) this.resolve(key);
  }

  /** The problem continues until it is resolved. */
  raise(notice: Notice, now: number): void {
    const known = this.entryOf(notice, now);
    if (known === undefined || known.open) return;
    known.open = true;
    known.since = now;
    // The notice's end was not sent yet, so for the targets it never ended.
    known.told = known.ended;
    known.ended = false;
  }

  resolve(key: string): void {
    const known = this.entries.get(key);
    if (known === undefined || !known.open) return;
    known.open = false;
    known.ended = known.told;
    known.told = false;
    if (known.toldAt === 0) this.entries.delete(key);
  }

  /** It happened, and is over. */
  happened(notice: Notice, now: number): void {
    const known = this.entryOf(notice, now);
    if (known === undefined || known.ended || known.open) return;
    if (known.toldAt !== 0 && now - known.toldAt < this.repeatMs) return;
    this.entries.set(known.key, { ...known, since: now, ended: true, toldAt: 0 });
  }

  /** Takes the notices that are due, and counts them as sent. Empty while more may come. */
  due(now: number): readonly SentNotice[] {
    this.tidy(now);
    const waiting = [...this.entries.values()].filter((one) => this.isDue(one, now));
    if (waiting.length === 0) {
      this.waitingSince = undefined;
      return [];
    }
    this.waitingSince ??= now;
    // A clock that was set back must not keep it waiting.
    if (Math.abs(now - this.waitingSince) < this.digestMs) return [];
    this.waitingSince = undefined;
    return waiting.map((one) => this.tell(one, now));
  }

  /** Notices that were sent, which the next process may have to resolve. */
  get kept(): KeptBoard {
    return [...this.entries.values()].filter(({ toldAt }) => toldAt !== 0);
  }

  /** Continues from the stored board of another process; ignores other values. */
  recall(kept: unknown): void {
    const read = board.safeParse(kept);
    if (!read.success) return;
    for (const one of read.data) this.entries.set(one.key, one);
  }

  private isDue({ open, told, toldAt, quietMs, ended }: BoardEntry, now: number): boolean {
    if (ended) return true;
    if (!open) return false;
    return toldAt === 0 || now - toldAt >= (told ? this.repeatMs : Math.min(quietMs, this.repeatMs));
  }

  private tell(one: BoardEntry, now: number): SentNotice {
    const { key, what, fix, since } = one;
    const state = one.open ? "problem" : one.toldAt === 0 ? "event" : "resolved";
    if (state === "problem" && !one.told) {
      const recent = one.toldAt !== 0 && now - one.toldAt < 2 * this.repeatMs;
      one.quietMs = Math.min(recent ? one.quietMs * 2 : QUIET_MS, this.repeatMs);
    }
    one.told = one.open;
    one.ended = false;
    if (state !== "resolved") one.toldAt = now;
    return { key, what, fix, since, state };
  }

  /** The newest words about a thing; undefined if there are too many things. */
  private entryOf(notice: Notice, now: number): BoardEntry | undefined {
    const words = cleaned(notice);
    const known = this.entries.get(words.key);
    if (known !== undefined) return Object.assign(known, words);
    if (this.entries.size >= ENTRIES_MAX && !this.forgetOldest()) return undefined;
    const state = { open: false, since: now, told: false, toldAt: 0, quietMs: QUIET_MS, ended: false };
    const made = { ...words, ...state };
    this.entries.set(words.key, made);
    return made;
  }

  /**
   * Forgets the closed entry that was sent longest ago, if there is one: a repeat that comes too early is better than a
   * notice that is never sent.
   */
  private forgetOldest(): boolean {
    const over = [...this.entries.values()].filter(({ open, ended }) => !open && !ended);
    const oldest = over.sort((a, b) => a.toldAt - b.toldAt)[0];
    return oldest !== undefined && this.entries.delete(oldest.key);
  }

  private tidy(now: number): void {
    for (const one of this.entries.values()) {
      // The clock was set back: nothing is kept quiet for longer than it would have been.
      if (one.toldAt > now) one.toldAt = now;
      const quiet = now - one.toldAt > 2 * this.repeatMs;
      if (!one.open && !one.ended && quiet) this.entries.delete(one.key);
    }
  }
}

const DIGEST_MS = 60_000;
const QUIET_MS = 600_000;
const ENTRIES_MAX = 500;
