import { type HeaderList, HOP_BY_HOP } from "../../../model/serving.js";
import {
  FIELD_OVERHEAD,
  isFieldValue,
  isLowerToken,
  STATIC_ENTRIES,
  STATIC_TABLE,
  TABLE_BYTES_MAX,
  TABLE_ENTRIES_MAX,
} from "./hpackTables.js";

/** The head of a response. */
export interface ResponseHead {
  readonly status: number;
  /** Value of `server`; undefined for none. */
  readonly server: string | undefined;
  /** Value of `date`; empty for informational responses, which have none. */
  readonly date: string;
  readonly headers: HeaderList;
  /** Value of `content-length`; -1 for none. */
  readonly length: number;
}

/** The buffer that a block is written into, from `at` on. */
interface BlockOutput {
  readonly buffer: Buffer;
  at: number;
  /** Makes room for this many bytes; `buffer` may be another one afterwards. */
  reserve(bytes: number): void;
}

/**
 * The sending half of HPACK (RFC 7541) for one connection. Fields that recur are indexed. If a whole head recurs, as
 * most do on a busy connection, its block is sent again unchanged: a few bytes of indices. Huffman coding is left out:
 * it saves little once fields are indexed, and costs more than indexing.
 */
export class HpackEncoder {
  private readonly entries = new Array<TableEntry | undefined>(TABLE_ENTRIES_MAX).fill(undefined);
  /** The newest entry of each name. */
  private readonly byName = new Map<string, TableEntry>();
  /** Insertions and evictions so far; an entry's index follows from its own number. */
  private inserted = 0;
  private evicted = 0;
  private size = 0;
  private sizeMax = TABLE_BYTES_MAX;
  /** Sizes to announce before the next field (RFC 7541, 4.2). */
  private announced: number[] = [];
  private last: RecurringHead | undefined = undefined;

  /** The peer's SETTINGS_HEADER_TABLE_SIZE. */
  limitTable(bytes: number): void {
    const sizeMax = Math.min(bytes, TABLE_BYTES_MAX);
    if (sizeMax === this.sizeMax) return;
    this.sizeMax = sizeMax;
    this.evict(sizeMax);
    // The smallest size in between and the final one.
    const smallest = Math.min(...this.announced, sizeMax);
    this.announced = smallest === sizeMax ? [sizeMax] : [smallest, sizeMax];
    this.last = undefined;
  }

  /** Why the head cannot be sent (RFC 9113, 8.2); undefined if it can. */
  check(head: ResponseHead): string | undefined {
    if (this.recurs(head)) return undefined;
    const { headers } = head;
    for (let i = 0; i < headers.length; i += 2) {
      if (nameOf(headers[i]!).use === Use.Invalid) return "invalid field name";
      if (!isFieldValue(headers[i + 1]!)) return `invalid value of ${headers[i]}`;
    }
    return undefined;
  }

  /** Puts the block of a head that was checked into an output. */
  encode(head: ResponseHead, output: BlockOutput): void {
    if (this.recurs(head)) {
      const { block } = this.last!;
      output.reserve(block.length + LENGTH_BYTES_MAX);
      for (let i = 0; i < block.length; i++) output.buffer[output.at + i] = block[i]!;
      output.at += block.length;
    } else this.encodeAnew(head, output);
    if (head.length >= 0) encodeLength(head.length, output);
  }

  private encodeAnew(head: ResponseHead, output: BlockOutput): void {
    const { headers } = head;
    // 256 bytes are for status, server, date and announced sizes.
    let bytes = 256;
    for (let i = 0; i < headers.length; i++) bytes += headers[i]!.length + 8;
    output.reserve(bytes + LENGTH_BYTES_MAX);
    const from = output.at;
    const { inserted } = this;
    for (const size of this.announced) integer(output, 0x20, 5, size);
    const resized = this.announced.length > 0;
    if (resized) this.announced = [];
    encodeStatus(head.status, output);
    if (head.server !== undefined) this.field(SERVER, head.server, output);
    if (head.date !== "") this.field(DATE, head.date, output);
    for (let i = 0; i < headers.length; i += 2) {
      const name = nameOf(headers[i]!);
      if (name.use !== Use.Dropped) this.field(name, headers[i + 1]!, output);
    }
    // A block that inserted nothing has the same meaning if it is sent again.
    const length = output.at - from;
    if (inserted === this.inserted && !resized && length <= RECURRING_BYTES_MAX && head.date !== "")
      this.last = {
        status: head.status,
        server: head.server,
        date: head.date,
        headers: headers.slice(),
        block: Buffer.from(output.buffer.subarray(from, output.at)),
      };
  }

  private recurs(head: ResponseHead): boolean {
    const { last } = this;
    if (last === undefined || head.status !== last.status || head.date !== last.date) return false;
    const { headers } = head;
    const before = last.headers;
    if (head.server !== last.server || headers.length !== before.length) return false;
    for (let i = 0; i < headers.length; i++) if (headers[i] !== before[i]) return false;
    return true;
  }

  private field(name: Name, value: string, output: BlockOutput): void {
    const entry = this.byName.get(name.lower);
    if (entry !== undefined && entry.value === value)
      return integer(output, 0x80, 7, STATIC_ENTRIES + 1 + this.inserted - entry.number);
    const size = name.lower.length + value.length + FIELD_OVERHEAD;
    // An entry that takes much of the table would evict the others.
    const indexed = name.use === Use.Indexed && size * 4 <= this.sizeMax;
    const nameIndex =
      name.staticIndex || (entry === undefined ? 0 : STATIC_ENTRIES + 1 + this.inserted - entry.number);
    if (indexed) integer(output, 0x40, 6, nameIndex);
    else integer(output, name.use === Use.Sensitive ? 0x10 : 0, 4, nameIndex);
    if (nameIndex === 0) text(output, name.lower);
    text(output, value);
    if (indexed) this.insert({ name: name.lower, value, size, number: this.inserted + 1 });
  }

  private insert(entry: TableEntry): void {
    this.evict(this.sizeMax - entry.size);
    this.entries[++this.inserted & (TABLE_ENTRIES_MAX - 1)] = entry;
    this.byName.set(entry.name, entry);
    this.size += entry.size;
    this.last = undefined;
  }

  private evict(sizeMax: number): void {
    while (this.size > sizeMax) {
      const oldest = this.entries[++this.evicted & (TABLE_ENTRIES_MAX - 1)]!;
      this.entries[this.evicted & (TABLE_ENTRIES_MAX - 1)] = undefined;
      this.size -= oldest.size;
      if (this.byName.get(oldest.name) === oldest) this.byName.delete(oldest.name);
    }
  }
}

interface TableEntry {
  readonly name: string;
  readonly value: string;
  readonly size: number;
  readonly number: number;
}

interface RecurringHead {
  readonly status: number;
  readonly server: string | undefined;
  readonly date: string;
  readonly headers: HeaderList;
  readonly block: Buffer;
}

const RECURRING_BYTES_MAX = 256;

/** How a field is sent. */
const enum Use {
  Indexed,
  /** The field's value hardly ever recurs. */
  Literal,
  /** Never to be put into a table, not even by an intermediary (RFC 7541, 7.1.3). */
  Sensitive,
  /** Connection-specific: without a meaning on a stream (RFC 9113, 8.2.2). */
  Dropped,
  Invalid,
}

interface Name {
  readonly lower: string;
  /** Index in the static table; 0 for none. */
  readonly staticIndex: number;
  readonly use: Use;
}

const USES: ReadonlyMap<string, Use> = new Map<string, Use>([
  ...["age", "content-range", "etag", "expires", "last-modified", "location"].map(
    (name) => [name, Use.Literal] as const,
  ),
  ["set-cookie", Use.Sensitive],
  // The engine sets date and server itself, and the length too.
  ...[...HOP_BY_HOP, "date", "server"].map((name) => [name, Use.Dropped] as const),
]);

function makeName(lower: string, use: Use): Name {
  return {
    lower,
    use,
    staticIndex: Math.max(
      0,
      STATIC_TABLE.findIndex((field) => field.name === lower),
    ),
  };
}

const SERVER = makeName("server", Use.Indexed);
const DATE = makeName("date", Use.Indexed);

/** Names as they were given; kept, since a server's responses have few. */
const names = new Map<string, Name>();
const NAMES_MAX = 512;

function nameOf(given: string): Name {
  let name = names.get(given);
  if (name === undefined) {
    const lower = given.toLowerCase();
    name = makeName(lower, isLowerToken(lower) ? (USES.get(lower) ?? Use.Indexed) : Use.Invalid);
    if (names.size < NAMES_MAX) names.set(given, name);
  }
  return name;
}

function encodeStatus(status: number, output: BlockOutput): void {
  const index = STATIC_STATUS.get(status);
  if (index !== undefined) return integer(output, 0x80, 7, index);
  integer(output, 0, 4, FIRST_STATUS);
  text(output, String(status));
}

const FIRST_STATUS = 8;
const STATIC_STATUS = new Map(
  [200, 204, 206, 304, 400, 404, 500].map((status, i) => [status, FIRST_STATUS + i] as const),
);

/** Lengths differ from response to response; a digit is a byte. */
function encodeLength(length: number, output: BlockOutput): void {
  const digits = String(length);
  integer(output, 0, 4, CONTENT_LENGTH);
  output.buffer[output.at++] = digits.length;
  for (let i = 0; i < digits.length; i++) output.buffer[output.at++] = digits.charCodeAt(i);
}

const CONTENT_LENGTH = 28;
const LENGTH_BYTES_MAX = 24;

/** RFC 7541, 5.1. */
function integer(output: BlockOutput, first: number, prefixBits: number, value: number): void {
  const { buffer } = output;
  const mask = (1 << prefixBits) - 1;
  if (value < mask) {
    buffer[output.at++] = first | value;
    return;
  }
  buffer[output.at++] = first | mask;
  for (value -= mask; value >= 0x80; value >>>= 7) buffer[output.at++] = (value & 0x7f) | 0x80;
  buffer[output.at++] = value;
}

/** A string without Huffman coding (RFC 7541, 5.2). */
function text(output: BlockOutput, value: string): void {
  integer(output, 0, 7, value.length);
  output.at += output.buffer.write(value, output.at, "latin1");
}
