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
  /** Bytes of these fields (RFC 9113, 6.5.2). */
  listBytes = 0;
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
    const { fields, listBytesMax } = this;
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
      if (listBytes <= listBytesMax) fields.push(field);
    }
    this.listBytes = Math.min(listBytes, listBytesMax);
    return listBytes <= listBytesMax;
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

// HPACK's Huffman code (RFC 7541, appendix B), decoded four bits at a time. The code is canonical: it follows from the
// lengths of its codes. The table of states is computed from them for the first string, not at the start of a worker,
// which would have to wait for it.

/**
 * Decodes into `into`, which must hold `to - from` × 8 / 5 bytes.
 *
 * @returns how many bytes were decoded; -1 if the coding is broken: a code for the end of the string, or padding that
 * is longer than 7 bits or not the beginning of that code (RFC 7541, 5.2)
 */
export function huffmanDecode(bytes: Uint8Array, from: number, to: number, into: Uint8Array): number {
  const { steps, accepts } = (tables ??= buildTables());
  let state = 0;
  let at = 0;
  for (let i = from; i < to; i++) {
    const byte = bytes[i]!;
    let step = steps[(state << 4) | (byte >> 4)]!;
    if ((step & EMITS) !== 0) into[at++] = step & 0xff;
    step = steps[((step >>> STATE_SHIFT) << 4) | (byte & 0xf)]!;
    if ((step & EMITS) !== 0) into[at++] = step & 0xff;
    state = step >>> STATE_SHIFT;
  }
  return accepts[state] === 1 ? at : -1;
}

/** A step: the next state above {@link STATE_SHIFT}, whether it emits a byte, and the byte. */
const EMITS = 0x100;
const STATE_SHIFT = 9;
/** The code has 256 inner nodes, which are the states; one more swallows everything after an end of string. */
const BROKEN = 256;

// oxfmt-ignore
const CODE_BITS = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
  6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
  13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
  15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
  20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
  22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
  26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
  20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
  30,
];
const END_OF_STRING = 256;

interface Node {
  /** Position among the states, which leaves do not have. */
  state?: number;
  /** Only a leaf has a symbol. */
  symbol?: number;
  children: (Node | undefined)[];
  /** Whether a string may end here: fewer than 8 bits after the last symbol, all of them ones. */
  accepts: boolean;
}

const newNode = (accepts: boolean): Node => ({ children: [], accepts });

function buildTree(): Node {
  const root = newNode(true);
  const symbols = CODE_BITS.map((_, symbol) => symbol).sort((a, b) => CODE_BITS[a]! - CODE_BITS[b]!);
  let code = -1;
  let before = 0;
  for (const symbol of symbols) {
    const bits = CODE_BITS[symbol]!;
    // Canonical: the first code is all zeros; the next one of the same length is one more; of a longer one, the same continued with zeros.
    code = (code + 1) * 2 ** (bits - before);
    before = bits;
    let node = root;
    for (let bit = bits - 1; bit >= 0; bit--) {
      const one = Math.floor(code / 2 ** bit) % 2;
      node = node.children[one] ??= newNode(node.accepts && one === 1 && bits - bit < 8);
    }
    node.symbol = symbol;
  }
  return root;
}

function numberStates(root: Node): Node[] {
  const states: Node[] = [];
  const waiting = [root];
  for (let node = waiting.shift(); node !== undefined; node = waiting.shift()) {
    if (node.symbol !== undefined) continue;
    node.state = states.push(node) - 1;
    waiting.push(...(node.children as Node[]));
  }
  return states;
}

interface Tables {
  /** The step for each state and four bits; see {@link EMITS}. */
  readonly steps: Uint32Array;
  /** 1 for states in which a string may end. */
  readonly accepts: Uint8Array;
}

let tables: Tables | undefined;

function buildTables(): Tables {
  const states = numberStates(buildTree());
  const accepts = Uint8Array.from(states, (node) => (node.accepts ? 1 : 0));
  return { steps: buildSteps(states), accepts };
}

function buildSteps(states: readonly Node[]): Uint32Array {
  const steps = new Uint32Array((BROKEN + 1) * 16).fill(BROKEN << STATE_SHIFT);
  for (const from of states) {
    for (let nibble = 0; nibble < 16; nibble++) {
      let node = from;
      let emitted = 0;
      for (let bit = 3; bit >= 0 && node.symbol !== END_OF_STRING; bit--) {
        node = node.children[(nibble >> bit) & 1]!;
        if (node.symbol === undefined || node.symbol === END_OF_STRING) continue;
        // No code is shorter than five bits, so one nibble completes one at most.
        emitted = EMITS | node.symbol;
        node = states[0]!;
      }
      const next = node.symbol === END_OF_STRING ? BROKEN : node.state!;
      steps[(from.state! << 4) | nibble] = (next << STATE_SHIFT) | emitted;
    }
  }
  return steps;
}
