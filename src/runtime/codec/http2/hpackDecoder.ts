import { huffmanDecode } from "./huffman.js";
import {
  type HpackField,
  hpackField,
  STATIC_ENTRIES,
  STATIC_TABLE,
  TABLE_BYTES_MAX,
  TABLE_ENTRIES_MAX,
} from "./hpackTables.js";
import { ConnectionError, ErrorCode } from "./protocol.js";

/** The receiving half of HPACK (RFC 7541) for one connection. */
export class HpackDecoder {
  /** The fields of the block that was decoded last; the array is used again for the next. */
  readonly fields: HpackField[] = [];
  /** The dynamic table, newest entry at `newest`. */
  private readonly entries = new Array<HpackField | undefined>(TABLE_ENTRIES_MAX).fill(undefined);
  private newest = 0;
  private count = 0;
  private size = 0;
  private sizeMax = TABLE_BYTES_MAX;
  private at = 0;

  /** @param listBytesMax longest list of fields that is kept (RFC 9113, 6.5.2) */
  constructor(private readonly listBytesMax: number) {}

  /**
   * Decodes a whole field block into `fields`.
   *
   * @returns false if the list was longer than allowed; the table is correct anyway, `fields` has the beginning
   * @throws ConnectionError with COMPRESSION_ERROR if the block is broken (RFC 9113, 4.3)
   */
  decode(bytes: Buffer, from: number, to: number): boolean {
    const { fields } = this;
    fields.length = 0;
    let listBytes = 0;
    this.at = from;
    let updatable = true;
    while (this.at < to) {
      const first = bytes[this.at]!;
      if ((first & 0xe0) === 0x20) {
        // RFC 7541, 4.2: changes of size must come before the first field.
        if (!updatable) throw broken("table size update after a field");
        this.resize(this.integer(bytes, to, 5));
        continue;
      }
      updatable = false;
      const field = first >= 0x80 ? this.lookUp(this.integer(bytes, to, 7)) : this.literal(bytes, to, first);
      listBytes += field.size;
      if (listBytes <= this.listBytesMax) fields.push(field);
    }
    return listBytes <= this.listBytesMax;
  }

  /** RFC 7541, 6.2. */
  private literal(bytes: Buffer, to: number, first: number): HpackField {
    const indexed = (first & 0x40) !== 0;
    const nameIndex = this.integer(bytes, to, indexed ? 6 : 4);
    const name = nameIndex === 0 ? this.string(bytes, to) : this.lookUp(nameIndex).name;
    const field = hpackField(name, this.string(bytes, to));
    if (indexed) this.insert(field);
    return field;
  }

  private lookUp(index: number): HpackField {
    if (index === 0) throw broken("index 0");
    if (index <= STATIC_ENTRIES) return STATIC_TABLE[index]!;
    const behind = index - STATIC_ENTRIES - 1;
    if (behind >= this.count) throw broken("index beyond the table");
    return this.entries[(this.newest + behind) & (TABLE_ENTRIES_MAX - 1)]!;
  }

  private insert(field: HpackField): void {
    // An entry that is larger than the table empties it (RFC 7541, 4.4).
    this.evict(this.sizeMax - field.size);
    if (field.size > this.sizeMax) return;
    this.newest = (this.newest - 1) & (TABLE_ENTRIES_MAX - 1);
    this.entries[this.newest] = field;
    this.size += field.size;
    this.count++;
  }

  private evict(sizeMax: number): void {
    while (this.size > sizeMax && this.count > 0) {
      const oldest = (this.newest + --this.count) & (TABLE_ENTRIES_MAX - 1);
      this.size -= this.entries[oldest]!.size;
      this.entries[oldest] = undefined;
    }
  }

  private resize(sizeMax: number): void {
    if (sizeMax > TABLE_BYTES_MAX) throw broken("table size beyond the setting");
    this.sizeMax = sizeMax;
    this.evict(sizeMax);
  }

  /** RFC 7541, 5.1. Nothing that is valid here needs more than 28 bits after the prefix. */
  private integer(bytes: Buffer, to: number, prefixBits: number): number {
    const mask = (1 << prefixBits) - 1;
    const prefix = bytes[this.at++]! & mask;
    if (prefix < mask) return prefix;
    let value = mask;
    for (let shift = 0; shift <= 21; shift += 7) {
      if (this.at >= to) throw broken("integer is cut off");
      const byte = bytes[this.at++]!;
      value += (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw broken("integer is too large");
  }

  /** RFC 7541, 5.2; one char a byte. */
  private string(bytes: Buffer, to: number): string {
    if (this.at >= to) throw broken("string is cut off");
    const coded = bytes[this.at]! >= 0x80;
    const length = this.integer(bytes, to, 7);
    const from = this.at;
    if (length > to - from) throw broken("string is cut off");
    this.at = from + length;
    if (!coded) return bytes.toString("latin1", from, this.at);
    // No code is shorter than five bits.
    if (length * 2 > scratch.length) scratch = Buffer.allocUnsafeSlow(length * 2);
    const decoded = huffmanDecode(bytes, from, this.at, scratch);
    if (decoded === -1) throw broken("invalid Huffman code");
    return scratch.toString("latin1", 0, decoded);
  }
}

let scratch = Buffer.allocUnsafeSlow(32_768);

const broken = (what: string): ConnectionError =>
  new ConnectionError(ErrorCode.CompressionError, `invalid field block: ${what}`);
