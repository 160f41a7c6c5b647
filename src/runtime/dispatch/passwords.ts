import * as crypto from "node:crypto";
import {
  acceptedHash,
  type AccessUsers,
  type BasicCredentials,
  clientNetwork,
  hashText,
  type PasswordHash,
  type PhcHash,
} from "../../model/serving.js";
import { BcryptThread } from "./bcrypt.js";

/** Waits for the outcome of a verification. */
export interface PasswordWaiter {
  /** The outcome is known now, or no verification was possible. */
  onVerified(error?: Error): void;
}

/** Why a password is not verified: one client, or all together, have too many that wait. */
export type PasswordsBusy = "client" | "all";

/**
 * Verifies passwords, in Node's thread pool, or those of bcrypt in a thread of their own. What was verified is known from then on, by a hash under a key that only this
 * worker has: a request with known credentials, right or wrong, costs one such hash, and waits behind nobody.
 *
 * Verifications in progress leave half of the pool to files and names, and take up to 64 MiB of memory. Others wait, a
 * bounded number of each client and of all; whoever comes then is refused.
 */
export class Passwords {
  private readonly users = new Map<string, ReadonlyMap<string, string>>();
  private readonly key = crypto.randomBytes(32).toString("base64");
  /** Apart, so that guesses displace no user. */
  private readonly right = new Map<string, Outcome>();
  private readonly wrong = new Map<string, Outcome>();
  private readonly jobs = new Map<string, Job>();
  private readonly waiting: Job[] = [];
  private readonly ofClient = new Map<string, number>();
  private readonly bcrypt = new BcryptThread();
  private running = 0;
  private memoryKib = 0;

  constructor(users: AccessUsers) {
    this.setUsers(users);
  }

  /** From now on the files have these users. A result stays as long as the hash that it came from. */
  setUsers(users: AccessUsers): void {
    for (const [file, list] of Object.entries(users)) this.users.set(file, new Map(list));
  }

  /** Whether credentials are right; undefined if that has to be verified. */
  known(file: string, { user, password }: BasicCredentials): boolean | undefined {
    const users = this.users.get(file);
    if (users === undefined || users.size === 0) return false;
    const id = this.idOf(file, user, password);
    const hash = users.get(user);
    if (hash !== undefined && this.right.get(id)?.hash === hash) return true;
    const wrong = this.wrong.get(id);
    return wrong !== undefined && wrong.hash === hash ? false : undefined;
  }

  /**
   * Verifies credentials that are not known.
   *
   * @param address of the client
   * @returns what ends the wait, or why there is none
   */
  verify(
    file: string,
    { user, password }: BasicCredentials,
    address: string,
    waiter: PasswordWaiter,
  ): (() => void) | PasswordsBusy {
    const id = this.idOf(file, user, password);
    let job = this.jobs.get(id);
    if (job === undefined) {
      const client = clientNetwork(address, CLIENT_PREFIX);
      const number = this.ofClient.get(client) ?? 0;
      if (number >= OF_CLIENT_MAX) return "client";
      if (this.waiting.length >= WAITING_MAX) return "all";
      const users = this.users.get(file)!;
      const hash = users.get(user);
      const text = hash ?? this.anyOf([...users.values()], user);
      job = { id, client, hash, against: acceptedHash(text), password, waiters: new Set(), runs: false };
      this.jobs.set(id, job);
      this.ofClient.set(client, number + 1);
      this.waiting.push(job);
    }
    const wanted = job;
    wanted.waiters.add(waiter);
    this.runNext();
    return () => {
      wanted.waiters.delete(waiter);
      if (wanted.waiters.size > 0 || wanted.runs) return;
      this.waiting.splice(this.waiting.indexOf(wanted), 1);
      this.forget(wanted);
    };
  }

  /** A hash for an unknown name: one of a user's, and always the same, so that the name takes as long as that user's. */
  private anyOf(hashes: readonly string[], user: string): string {
    const digest = crypto.hash("sha256", `${this.key}${user}`, "hex");
    return hashes[parseInt(digest.slice(0, 8), 16) % hashes.length]!;
  }

  private idOf(file: string, user: string, password: string): string {
    // Nobody sees it, so it needs no HMAC, which takes four times as long.
    return crypto.hash("sha256", `${this.key}${file}\0${user}\0${password}`, "base64");
  }

  private runNext(): void {
    for (;;) {
      const job = this.waiting[0];
      if (job === undefined || this.running >= RUNNING_MAX) return;
      const memory = memoryKibOf(job.against);
      if (this.running > 0 && this.memoryKib + memory > MEMORY_KIB_MAX) return;
      this.waiting.shift();
      job.runs = true;
      this.running += 1;
      this.memoryKib += memory;
      derive(this.bcrypt, job.against, job.password, (error, isRight) => {
        this.running -= 1;
        this.memoryKib -= memory;
        this.forget(job);
        if (error === null) this.remember(job, isRight);
        this.runNext();
        for (const waiter of [...job.waiters])
          // The requests before it may have ended this one.
          if (job.waiters.has(waiter)) waiter.onVerified(error ?? undefined);
      });
    }
  }

  private remember({ id, hash }: Job, isRight: boolean): void {
    const results = isRight && hash !== undefined ? this.right : this.wrong;
    results.delete(id);
    if (results.size >= RESULTS_MAX) results.delete(results.keys().next().value!);
    results.set(id, { hash });
  }

  private forget({ id, client }: Job): void {
    this.jobs.delete(id);
    const number = this.ofClient.get(client)! - 1;
    if (number === 0) this.ofClient.delete(client);
    else this.ofClient.set(client, number);
  }
}

interface Outcome {
  /** The hash of the user's that it came from; undefined for an unknown user. */
  readonly hash: string | undefined;
}

interface Job {
  readonly id: string;
  readonly client: string;
  /** Undefined for an unknown user. */
  readonly hash: string | undefined;
  readonly against: PasswordHash;
  readonly password: string;
  readonly waiters: Set<PasswordWaiter>;
  runs: boolean;
}

const RUNNING_MAX = 2;
const MEMORY_KIB_MAX = 64 * 1024;
const WAITING_MAX = 64;
const OF_CLIENT_MAX = 4;
/** A provider gives each customer at least such an IPv6 network. */
const CLIENT_PREFIX = 64;
/** A megabyte of each kind. */
const RESULTS_MAX = 4_096;

function memoryKibOf(hash: PasswordHash): number {
  if (hash.kind === "bcrypt") return 4;
  return hash.kind === "scrypt" ? (2 ** hash.ln * hash.r) / 8 : hash.memoryKib;
}

/** Whether a password has this hash. */
function derive(
  bcrypt: BcryptThread,
  against: PasswordHash,
  password: string,
  done: (error: Error | null, isRight: boolean) => void,
): void {
  const expected =
    against.kind === "bcrypt" ? Buffer.from(hashText(against)) : Buffer.from(against.hash, "base64");
  const compare = (error: Error | null, derived?: Uint8Array): void =>
    done(error, derived !== undefined && crypto.timingSafeEqual(derived, expected));
  if (against.kind === "bcrypt") {
    const setting = hashText({ ...against, hash: "" });
    return bcrypt.hash({ password, setting }, compare);
  }
  try {
    deriveKey(against, password, expected.length, compare);
  } catch (error) {
    // Nothing ends a verification before it was begun.
    process.nextTick(compare, error as Error);
  }
}

/** What has the cost and the salt of a stored hash. */
type Derivation = PhcHash extends infer T ? (T extends unknown ? Omit<T, "hash"> : never) : never;

/** Derives a key from a password. @throws if the machine has too little memory, or Node.js has no Argon2 */
export function deriveKey(
  by: Derivation,
  password: string,
  length: number,
  done: (error: Error | null, key: Buffer) => void,
): void {
  const salt = Buffer.from(by.salt, "base64");
  if (by.kind === "scrypt") {
    const { ln, r, p } = by;
    // OpenSSL counts a little more than the table.
    const maxmem = 128 * r * (2 ** ln + p + 2) + 1024 * 1024;
    return crypto.scrypt(password, salt, length, { N: 2 ** ln, r, p, maxmem }, done);
  }
  const { memoryKib: memory, passes, parallelism } = by;
  const parameters = { message: password, nonce: salt, parallelism, tagLength: length, memory, passes };
  (crypto as unknown as WithArgon2).argon2("argon2id", parameters, done);
}

/** Node.js 24.7 and newer. */
interface WithArgon2 {
  argon2(
    algorithm: "argon2id",
    parameters: Readonly<Record<string, unknown>>,
    done: (error: Error | null, key: Buffer) => void,
  ): void;
}
