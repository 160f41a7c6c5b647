import { type FrameSink, FrameReader } from "../../../src/runtime/codec/http2/frames.js";
import { HpackDecoder } from "../../../src/runtime/codec/http2/hpackDecoder.js";
import { ConnectionError } from "../../../src/runtime/codec/http2/protocol.js";
import { parseRequestHead } from "../../../src/runtime/codec/http2/requestFields.js";
import { WORDS } from "../cases/words.js";
import { demand, type FuzzTarget } from "../target.js";
import { checkForwarded } from "./http1.js";

const LIMITS = { requestLineBytesMax: 8_192, headBytesMax: 32_768, headerCountMax: 200 };
const LIST_BYTES_MAX = 39_168;

/** A field block; whether the stream ended is its first byte. */
const fieldBlock: FuzzTarget = {
  name: "field-block",
  dictionary: WORDS.fieldBlock,
  run(input) {
    const ended = input[0] === 1;
    const decoder = new HpackDecoder(LIST_BYTES_MAX);
    const faulty = faultOf(() => decoder.decode(input, 1, Math.max(1, input.length)));
    if (faulty) return;
    const listBytes = decoder.fields.reduce((sum, { size }) => sum + size, 0);
    demand(listBytes <= LIST_BYTES_MAX, "a list longer than allowed is kept", listBytes);
    const { request, refusal } = parseRequestHead(decoder.fields, ended, LIMITS, 0);
    if (refusal !== undefined) return;
    demand(request.method !== "CONNECT" || request.upgrade !== undefined, "a plain CONNECT passes", request);
    if (request.method === "CONNECT") return checkForwarded({ ...request, method: "GET" }, true, "");
    checkForwarded(request, false, request.bodyLength === 0 ? "" : "body");
  },
};

/** Notes what it is told, so that two readings can be compared. */
class Notes implements FrameSink {
  text = "";
  onDataBegin(stream: number, length: number): void {
    this.text += `\nDATA ${stream} ${length} `;
  }
  onDataPiece(chunk: Buffer, from: number, to: number): void {
    this.text += chunk.toString("hex", from, to);
  }
  onDataEnd(flags: number): void {
    this.text += ` ${flags}`;
  }
  onFrame(type: number, flags: number, stream: number, bytes: Buffer, from: number, to: number): void {
    this.text += `\n${type} ${flags} ${stream} ${bytes.toString("hex", from, to)}`;
  }
}

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

const frames: FuzzTarget = {
  name: "frames",
  dictionary: WORDS.frames,
  run(input) {
    const whole = readFrames(input, Math.max(1, input.length));
    for (const size of [1, 5]) {
      const pieces = readFrames(input, size);
      demand(pieces.faulty === whole.faulty, "a fault only in pieces, or only in the whole", whole.text);
      // Of the frame with the fault, some may have been told before.
      if (!whole.faulty) demand(pieces.text === whole.text, "other frames in pieces", { whole, pieces });
    }
  },
};

function readFrames(input: Buffer, size: number): { text: string; faulty: boolean } {
  const notes = new Notes();
  const reader = new FrameReader(notes);
  const faulty = faultOf(() => {
    reader.read(PREFACE);
    for (let at = 0; at < input.length; at += size) reader.read(Buffer.from(input.subarray(at, at + size)));
  });
  return { text: notes.text, faulty };
}

function faultOf(step: () => void): boolean {
  try {
    step();
    return false;
  } catch (error) {
    if (error instanceof ConnectionError) return true;
    throw error;
  }
}

export const HTTP2_TARGETS: readonly FuzzTarget[] = [fieldBlock, frames];
