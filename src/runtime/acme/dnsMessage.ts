import { createHmac, randomInt, timingSafeEqual } from "node:crypto";
import { TSIG_ALGORITHMS, type TsigKey } from "../load/dnsFiles.js";

/**
 * Messages of a dynamic update (RFC 2136), signed with TSIG (RFC 8945): one form that is written, and one that is read.
 * Existing codecs for Node support neither the class NONE, which removes a record, nor TSIG.
 */

export type TxtChange = "present" | "cleanup";

export interface TxtRecord {
  readonly name: string;
  readonly value: string;
}

/** A message with its signature, which the response's signature covers as well. */
export interface SignedMessage {
  readonly bytes: Buffer;
  readonly mac: Buffer;
}

const UPDATE = 5 << 11;
const TYPE = { soa: 6, txt: 16, tsig: 250 };
const CLASS = { in: 1, none: 254, any: 255 };
const FUDGE_SECONDS = 300;

/** Adds records to a zone, or removes these and no others of the same name. */
export function updateMessage(
  zone: string,
  change: TxtChange,
  records: readonly TxtRecord[],
  ttlSeconds: number,
): Buffer {
  const counts = [1, 0, records.length, 0].map(u16);
  const header = [u16(randomInt(0x10000)), u16(UPDATE), ...counts];
  const [of, ttl] = change === "present" ? [CLASS.in, ttlSeconds] : [CLASS.none, 0];
  const changes = records.map(({ name, value }) => {
    const data = Buffer.concat([Buffer.from([value.length]), Buffer.from(value, "latin1")]);
    return recordOf(name, TYPE.txt, of, ttl, data);
  });
  return Buffer.concat([...header, wireName(zone), u16(TYPE.soa), u16(CLASS.in), ...changes]);
}

export function signed(message: Buffer, key: TsigKey, seconds: number): SignedMessage {
  const stamp = { seconds, fudge: FUDGE_SECONDS, error: 0, other: Buffer.alloc(0) };
  const mac = macOf(key, [message, variables(key, stamp)]);
  const id = message.subarray(0, 2);
  const data = Buffer.concat([
    ...[wireName(key.algorithm), u48(seconds), u16(FUDGE_SECONDS), u16(mac.length), mac, id, u16(0), u16(0)],
  ]);
  const bytes = Buffer.concat([message, recordOf(key.name, TYPE.tsig, CLASS.any, 0, data)]);
  bytes.writeUInt16BE(1, ADDITIONAL_COUNT);
  return { bytes, mac };
}

/** Why a server refuses an update, or why its response does not count; undefined if it has made the change. */
export function refusalIn(response: Buffer, request: SignedMessage, key: TsigKey): string | undefined {
  try {
    return readRefusal(response, request, key);
  } catch {
    return "its response is not a DNS message";
  }
}

function readRefusal(response: Buffer, request: SignedMessage, key: TsigKey): string | undefined {
  const flags = response.readUInt16BE(2);
  if (response.readUInt16BE(0) !== request.bytes.readUInt16BE(0) || (flags & 0xf800) !== (0x8000 | UPDATE))
    return "its response belongs to another message";
  const tsig = tsigIn(response);
  const code = flags & 15;
  if (code !== 0) {
    const [name = `code ${code}`, hint] = RESPONSE_CODES[code] ?? [];
    const why = TSIG_ERRORS[tsig?.error ?? 0] ?? hint;
    return `it refuses the update (${name})${why === undefined ? "" : `: ${why}`}`;
  }
  if (tsig?.name !== key.name || tsig.algorithm !== key.algorithm)
    return "its response is not signed with the key";
  // The message as it was before it was signed.
  const message = Buffer.from(response.subarray(0, tsig.start));
  message.writeUInt16BE(response.readUInt16BE(ADDITIONAL_COUNT) - 1, ADDITIONAL_COUNT);
  const parts = [u16(request.mac.length), request.mac, message, variables(key, tsig)];
  const expected = macOf(key, parts);
  const genuine = tsig.mac.length === expected.length && timingSafeEqual(tsig.mac, expected);
  return genuine ? undefined : "its response is not signed with the key";
}

const RESPONSE_CODES: Readonly<Record<number, readonly [name: string, hint?: string]>> = {
  1: ["FORMERR"],
  2: ["SERVFAIL"],
  3: ["NXDOMAIN"],
  4: ["NOTIMP", "it takes no updates"],
  5: ["REFUSED", "the key may not change this record"],
  9: ["NOTAUTH", "it is not the primary server of the zone"],
  10: ["NOTZONE", "the record is not in the zone"],
};

const TSIG_ERRORS: Readonly<Record<number, string>> = {
  16: "the key of this name has another secret there",
  17: "it does not know the key",
  18: "its clock and that of this host differ by more than five minutes",
};

interface Stamp {
  readonly seconds: number;
  readonly fudge: number;
  readonly error: number;
  readonly other: Buffer;
}

/** RFC 8945, 4.3.3. */
function variables(key: TsigKey, { seconds, fudge, error, other }: Stamp): Buffer {
  const names = [wireName(key.name), u16(CLASS.any), u32(0), wireName(key.algorithm)];
  return Buffer.concat([...names, u48(seconds), u16(fudge), u16(error), u16(other.length), other]);
}

function macOf({ algorithm, secret }: TsigKey, parts: readonly Buffer[]): Buffer {
  const hmac = createHmac(TSIG_ALGORITHMS[algorithm], secret);
  for (const part of parts) hmac.update(part);
  return hmac.digest();
}

interface Tsig extends Stamp {
  readonly name: string;
  readonly algorithm: string;
  readonly mac: Buffer;
  /** The position at which the record begins. */
  readonly start: number;
}

/** The signature, which is the last record; undefined if there is none. @throws RangeError beyond the message's end */
function tsigIn(message: Buffer): Tsig | undefined {
  const count = (at: number): number => message.readUInt16BE(at);
  let at = 12;
  for (let i = 0; i < count(4); i++) at = nameEnd(message, at) + 4;
  let start = at;
  for (let i = 0; i < count(6) + count(8) + count(ADDITIONAL_COUNT); i++) {
    start = at;
    at = nameEnd(message, at) + 10;
    at += message.readUInt16BE(at - 2);
  }
  if (count(ADDITIONAL_COUNT) === 0 || at !== message.length) return undefined;
  const { name, end } = nameAt(message, start);
  if (message.readUInt16BE(end) !== TYPE.tsig) return undefined;
  const { name: algorithm, end: data } = nameAt(message, end + 10);
  const macEnd = data + 10 + message.readUInt16BE(data + 8);
  const otherEnd = macEnd + 6 + message.readUInt16BE(macEnd + 4);
  if (otherEnd !== message.length) return undefined;
  return {
    name,
    algorithm,
    start,
    seconds: message.readUIntBE(data, 6),
    fudge: message.readUInt16BE(data + 6),
    mac: message.subarray(data + 10, macEnd),
    error: message.readUInt16BE(macEnd + 2),
    other: message.subarray(macEnd + 6, otherEnd),
  };
}

/**
 * The position after a name; pointers are not followed: in an unsigned response, thousands of names may share their labels.
 */
function nameEnd(message: Buffer, from: number): number {
  for (let at = from; ;) {
    const length = message.readUInt8(at);
    if (length === 0) return at + 1;
    if (length >= 64) return at + 2;
    at += 1 + length;
  }
}

/**
 * A name with its compression (RFC 1035, 4.1.4). Each pointer has to lead further back, and a name has no more labels than
 * fit into its 255 bytes (RFC 1035, 3.1).
 */
function nameAt(message: Buffer, from: number): { readonly name: string; readonly end: number } {
  const labels: string[] = [];
  let end: number | undefined;
  let bytes = 1;
  for (let at = from, before = from; ;) {
    const length = message.readUInt8(at);
    if (length === 0) return { name: labels.join("."), end: end ?? at + 1 };
    // A pointer, too, follows a label; one that leads to another pointer saves nothing.
    bytes += length < 64 ? 1 + length : 1;
    if (bytes > NAME_BYTES_MAX) throw new RangeError("a name that is too long");
    if (length < 64) {
      labels.push(message.toString("latin1", at + 1, at + 1 + length).toLowerCase());
      at += 1 + length;
      continue;
    }
    end ??= at + 2;
    at = message.readUInt16BE(at) & 0x3fff;
    if (length < 0xc0 || at >= before) throw new RangeError("a name that does not end");
    before = at;
  }
}

const ADDITIONAL_COUNT = 10;
const NAME_BYTES_MAX = 255;

function recordOf(name: string, type: number, of: number, ttl: number, data: Buffer): Buffer {
  return Buffer.concat([wireName(name), u16(type), u16(of), u32(ttl), u16(data.length), data]);
}

function wireName(name: string): Buffer {
  const labels = name.split(".").map((label) => Buffer.from(label, "latin1"));
  return Buffer.concat([
    ...labels.flatMap((label) => [Buffer.from([label.length]), label]),
    Buffer.from([0]),
  ]);
}

const u16 = (value: number): Buffer => unsigned(value, 2);
const u32 = (value: number): Buffer => unsigned(value, 4);
const u48 = (value: number): Buffer => unsigned(value, 6);

function unsigned(value: number, bytes: number): Buffer {
  const buffer = Buffer.alloc(bytes);
  buffer.writeUIntBE(value, 0, bytes);
  return buffer;
}
