import { guarded } from "../sockets/guarded.js";
import {
  acceptedCodings,
  type ActionOf,
  type ContentCoding,
  isFileMethod,
  restBelow,
  type RouteConfig,
  withSlash,
} from "../../model/serving.js";
import { respondError, respondFailure, sendPage } from "../dispatch/errorPages.js";
import type { RouteAction, ErrorLevel, Exchange, HeaderList } from "../exchange/exchange.js";
import { reasonPhrase } from "../dispatch/reasonPhrases.js";
import { systemReason } from "../files/systemReason.js";
import { type Conditions, evaluateConditions, rangeMaySend, readConditions } from "./conditional.js";
import { FileCache, type StaticFile } from "./fileCache.js";
import { type LookupFailure, FileLookup, type LookupResult } from "./fileLookup.js";
import { FileTransfer } from "./fileTransfer.js";
import { shown } from "../files/pathText.js";
import { byteLength, contentRange, multipart, parseRange, type Segment } from "./ranges.js";

/**
 * Serves the files below a directory (decisions 6).
 *
 * The description of a file, and the content of a small one, is cached; every response checks that it is still current.
 * Length, validators and content of a response always belong together: a small file is read as a whole between two
 * checks with the same result, a large one is opened for the response and compared with the announced state. If a large
 * file shrinks while it is sent, the response is aborted. No server can notice in time that a file is overwritten in
 * place while it is sent: replace files by renaming.
 *
 * The check is a system call that waits for the disk, as in nginx: a directory on a network file system that hangs
 * blocks the worker.
 */
export class StaticFilesAction implements RouteAction {
  private readonly cache = new FileCache();
  private readonly lookup: FileLookup;
  private readonly codings: readonly ContentCoding[];
  /** Lookups in progress, by key of the cache. */
  private readonly looks = new Map<string, Look>();

  constructor(
    private readonly route: RouteConfig,
    config: ActionOf<"staticFiles">,
  ) {
    this.lookup = new FileLookup(config);
    this.codings = config.precompressed ?? [];
  }

  handle(exchange: Exchange): void {
    // Before the disk is read: a method that is not allowed is not allowed for a missing file either.
    if (!isFileMethod(exchange.request.method)) return respondError(exchange, 405, ALLOW);
    const file = this.cache.get(exchange.request.path);
    if (file !== undefined && this.lookup.isCurrent(file, exchange.request.path))
      this.respond(exchange, file, ATTEMPTS_MAX);
    else this.handleSlowly(exchange, ATTEMPTS_MAX);
  }

  /** @param attempts how often the file may still change between its lookup and its opening */
  private handleSlowly(exchange: Exchange, attempts: number): void {
    const { path } = exchange.request;
    const find = (): Promise<LookupResult> => this.find(path);
    this.lookFor(exchange, path, find, (found) => this.respondFound(exchange, found, attempts));
  }

  private lookFor(
    exchange: Exchange,
    key: string,
    find: () => Promise<LookupResult>,
    then: (found: LookupResult) => void,
  ): void {
    void this.look(key, find).then(
      (found) =>
        guarded(exchange, () => {
          if (!exchange.released) then(found);
        }),
      // A refusal by the system is a result too: an exception in a lookup is an internal fault.
      (error: unknown) => exchange.onFault(error),
    );
  }

  private respondFound(exchange: Exchange, found: LookupResult, attempts: number): void {
    if (found.kind === "file") return this.respond(exchange, found.file, attempts);
    if (found.kind === "directory") return this.respondDirectory(exchange);
    report(exchange, found.level, found.message);
    if (found.status >= 500) respondFailure(exchange, "proxy_internal_error", found.status);
    else respondError(exchange, found.status);
  }

  /**
   * A request that comes during a lookup may follow a change that the lookup missed: all such requests share the next
   * one.
   */
  private look(key: string, find: () => Promise<LookupResult>): Promise<LookupResult> {
    const running = this.looks.get(key);
    if (running === undefined) return this.beginLook(key, find);
    const again = (): Promise<LookupResult> => this.beginLook(key, find);
    return (running.next ??= running.found.then(again, again));
  }

  private beginLook(key: string, find: () => Promise<LookupResult>): Promise<LookupResult> {
    const look: Look = { found: this.refresh(key, find), next: undefined };
    this.looks.set(key, look);
    const over = (): void => {
      if (look.next === undefined) this.looks.delete(key);
    };
    look.found.then(over, over);
    return look.found;
  }

  private async refresh(key: string, find: () => Promise<LookupResult>): Promise<LookupResult> {
    const known = this.cache.get(key);
    if (known !== undefined) {
      const now = Date.now();
      if (await this.lookup.isUnchanged(known, key)) {
        known.checkedAt = now;
        return { kind: "file", file: known };
      }
    }
    this.cache.delete(key);
    const found = await find();
    if (found.kind === "file") this.cache.set(key, found.file);
    return found;
  }

  private async find(path: string): Promise<LookupResult> {
    const rest = restBelow(this.route, path);
    if (rest === undefined) {
      const message = `"${shown(path)}" is beside "${this.route.path}", not below it`;
      return { kind: "failure", status: 404, level: "error", message };
    }
    return this.lookup.find(rest);
  }

  /** The last attempt is without encoded files: only the original decides whether there is a response. */
  private respond(exchange: Exchange, file: StaticFile, attempts: number): void {
    if (this.codings.length === 0 || attempts === 0) return this.respondWith(exchange, file, attempts);
    this.respondEncoded(exchange, file, acceptedCodings(exchange.request.headers, this.codings), attempts);
  }

  /** Responds with the file of the first coding that there is one of, otherwise with the original. */
  private respondEncoded(
    exchange: Exchange,
    original: StaticFile,
    [coding, ...others]: readonly ContentCoding[],
    attempts: number,
  ): void {
    if (coding === undefined) return this.respondWith(exchange, original, attempts);
    const key = `${coding} ${original.path}`;
    const known = this.cache.get(key);
    if (known !== undefined && this.lookup.isCurrent(known, key))
      return this.respondWith(exchange, known, attempts);
    if (!this.lookup.hasEncoded(original, coding)) {
      this.cache.delete(key);
      return this.respondEncoded(exchange, original, others, attempts);
    }
    const find = (): Promise<LookupResult> => this.lookup.findEncoded(original, coding);
    this.lookFor(exchange, key, find, (found) => {
      if (found.kind === "file") return this.respondWith(exchange, found.file, attempts);
      if (found.kind === "failure") report(exchange, found.level, found.message);
      this.respondEncoded(exchange, original, others, attempts);
    });
  }

  private respondWith(exchange: Exchange, file: StaticFile, attempts: number): void {
    const { headers } = exchange.request;
    const conditions = readConditions(headers);
    if (conditions === undefined) return this.sendWhole(exchange, file, attempts);
    const verdict = evaluateConditions(conditions, file);
    if (verdict === 412) return respondError(exchange, 412);
    if (verdict === 304) {
      exchange.sendHead(304, reasonPhrase(304), file.validatorHeaders, -1);
      return exchange.end();
    }
    this.respondRange(exchange, file, conditions, attempts);
  }

  private respondRange(exchange: Exchange, file: StaticFile, asked: Conditions, attempts: number): void {
    // RFC 9110, 14.2: only GET has ranges (nginx also applies them to HEAD).
    const ranges =
      asked.range === undefined || exchange.request.method !== "GET" || !rangeMaySend(asked.ifRange, file)
        ? "whole"
        : parseRange(asked.range, file.size);
    if (ranges === "whole") return this.sendWhole(exchange, file, attempts);
    if (ranges === "unsatisfiable") {
      return respondError(exchange, 416, { headers: ["Content-Range", `bytes */${file.size}`] });
    }
    const [first, second] = ranges;
    if (second === undefined) {
      const where = ["Content-Range", contentRange(first!, file.size)];
      const { contentType, encodingHeaders, validatorHeaders } = file;
      const partHeaders = ["Content-Type", contentType, ...encodingHeaders, ...validatorHeaders, ...where];
      return this.send(exchange, file, 206, partHeaders, [first!], attempts);
    }
    // `Content-Encoding` would say that all parts together are encoded, boundaries included.
    if (file.encodingHeaders.length > 0) return this.sendWhole(exchange, file, attempts);
    const { type, segments } = multipart(ranges, file.size, file.contentType);
    this.send(exchange, file, 206, ["Content-Type", type, ...file.validatorHeaders], segments, attempts);
  }

  private sendWhole(exchange: Exchange, file: StaticFile, attempts: number): void {
    if (file.content === undefined) {
      const all = { start: 0, end: file.size };
      return this.send(exchange, file, 200, file.headers, [all], attempts);
    }
    exchange.sendHead(200, "OK", file.headers, file.size);
    if (file.size > 0 && exchange.request.method === "GET") exchange.sendData(file.content);
    exchange.end();
  }

  private send(
    exchange: Exchange,
    file: StaticFile,
    status: number,
    headers: HeaderList,
    segments: readonly Segment[],
    attempts: number,
  ): void {
    const length = byteLength(segments);
    const sendHead = (): void => exchange.sendHead(status, reasonPhrase(status), headers, length);
    if (exchange.request.method === "HEAD") {
      sendHead();
      return exchange.end();
    }
    const { content } = file;
    if (content === undefined) return this.transfer(exchange, file, segments, sendHead, attempts);
    const pieces = segments.map((s) => ("start" in s ? content.subarray(s.start, s.end) : s));
    sendHead();
    exchange.sendData(pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces));
    exchange.end();
  }

  /** Sends from the disk. Nothing is sent before the open file has proved to be the one described. */
  private transfer(
    exchange: Exchange,
    file: StaticFile,
    segments: readonly Segment[],
    sendHead: () => void,
    attempts: number,
  ): void {
    const failed = (failure: LookupFailure | Error): void => {
      if (!("kind" in failure)) sendingFailed(exchange, file, failure);
      // A new lookup will find out why (gone, unreadable, too many open files).
      else if (attempts > 0) this.handleSlowly(exchange, attempts - 1);
      else this.respondFound(exchange, failure, 0);
    };
    const transfer = new FileTransfer(exchange, segments, sendHead, failed);
    transfer.start((owner) => this.lookup.openDescribed(file, owner));
  }

  private respondDirectory(exchange: Exchange): void {
    const { path } = exchange.request;
    sendPage(exchange, 301, ["Location", withSlash(exchange.request.target, path)]);
  }
}

function sendingFailed(exchange: Exchange, { path }: StaticFile, error: Error): void {
  report(exchange, "crit", `sending "${shown(path)}" failed ${systemReason(error)}`);
  respondFailure(exchange, "proxy_internal_error", 500);
}

/** A lookup of a path, and the next one, for requests that came in the meantime. */
interface Look {
  readonly found: Promise<LookupResult>;
  next: Promise<LookupResult> | undefined;
}

const ALLOW = { headers: ["Allow", "GET, HEAD"] };
const ATTEMPTS_MAX = 2;

function report(exchange: Exchange, level: ErrorLevel, message: string): void {
  exchange.route?.errorLog.write(level, message, exchange);
}
