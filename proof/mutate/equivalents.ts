import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../../build/paths.js";
import type { Fault } from "./faults.js";

/** Faults that change nothing anybody could see. They are found by what they replace, so that other edits move nothing. */
export interface Equivalent {
  /** A source, or a folder of them. */
  readonly file: string;
  /** What the line of the fault reads like; for what stands in several places. */
  readonly line?: RegExp;
  readonly from?: string | RegExp;
  readonly to?: string | RegExp;
  readonly why: string;
}

/** What only decides how much is done at once: memory and time differ by less than anybody could measure. */
const sizes = (file: string, ...names: readonly string[]): readonly Equivalent[] =>
  names.map((name) => ({
    file: `src/runtime/${file}`,
    line: new RegExp(`^(?:export )?const ${name} = [\\d_]+;|\\b${name}: \\d+ \\}`),
    why: "a size that was measured best; one more makes no difference",
  }));

export const EQUIVALENTS: readonly Equivalent[] = [
  {
    file: "src/asOwner/mediaImage.ts",
    line: /^const FOLDERS_MAX = /,
    why: "a bound on a search; one folder more makes no difference",
  },
  {
    file: "src/activation/firewallRules.ts",
    from: "/\\b(ip6?) saddr (!= )?(\\{[^}]*\\}|\\S+)/",
    to: "/\\b(ip6?) saddr (!= )?(\\{[^}]+\\}|\\S+)/",
    why: "nft takes no empty set",
  },
  {
    file: "src/activation/firewallRules.ts",
    from: "/\\b(ip6?) saddr (!= )?(\\{[^}]*\\}|\\S+)/",
    to: "/\\b(ip6?) saddr (!= )?(\\{[^}]*\\}|\\S*)/",
    why: "something stands after `saddr `",
  },
  {
    file: "src/activation/stagedCheck.ts",
    from: "/Command (\\S+) is not executable/",
    to: "/Command (\\S*) is not executable/",
    why: "the command has a name",
  },
  {
    file: "src/applicationSettings/iniFile.ts",
    from: "/^([^=:]*?)[ \\t]*([=:])[ \\t]*/",
    to: "/([^=:]*?)[ \\t]*([=:])[ \\t]*/",
    why: "a match begins at the first character, if there is one; the anchor saves looking for others",
  },
  {
    file: "src/applicationSettings/python/tokens.ts",
    from: "/\\.?\\d[\\w.]*/y",
    to: "/\\.?\\d[\\w.]+/y",
    why: "a lone digit is then a token of one character all the same",
  },
  {
    file: "src/constructs/props/tokens.ts",
    from: "/-\\d\\.\\d+e\\+\\d{3}/g",
    to: "/-\\d\\.\\d*e\\+\\d{3}/g",
    why: "numbers of that size are written with digits after the point",
  },
  {
    file: "src/constructs/props/tokens.ts",
    from: '/"whole-portico-token-(\\d+)x"|portico-token-(\\d+)x/g',
    to: '/"whole-portico-token-(\\d*)x"|portico-token-(\\d+)x/g',
    why: "every marker has a number",
  },
  {
    file: "src/constructs/props/tokens.ts",
    from: '/"whole-portico-token-(\\d+)x"|portico-token-(\\d+)x/g',
    to: '/"whole-portico-token-(\\d+)x"|portico-token-(\\d*)x/g',
    why: "every marker has a number",
  },
  {
    file: "src/model/actions/forwarding.ts",
    from: "/^(https?):\\/\\/([^/?#]*)(.*)/i",
    to: "/^(https?):\\/\\/([^/?#]+)(.*)/i",
    why: "an empty authority is not a host, so there is no target either way",
  },
  {
    file: "src/model/config/parse.ts",
    from: "/position (\\d+)(?! \\(line)/",
    to: "/position (\\d*)(?! \\(line)/",
    why: "the engine's message always has a number there",
  },
  {
    file: "src/runtime/",
    line: /^(?:export )?const \w+_MS = [\d_]+;/,
    why: "a millisecond more: deadlines are looked at four times a second, and timers may be late by more",
  },
  {
    file: "src/runtime/",
    from: /^now (?:>=|<) (?:this\.)?\w*(?:[dD]eadline|Until|lookAt)$/,
    to: /^\(now\) (?:>|<=) /,
    why: "the clock has fractions of milliseconds, and does not stop at a deadline",
  },
  {
    file: "src/runtime/http1/responseHead.ts",
    from: "400",
    why: "whatever is wrong with an answer, the client gets a 502",
  },
  {
    file: "src/runtime/upstream/connection.ts",
    from: "400",
    why: "whatever is wrong with an answer, the client gets a 502",
  },
  {
    file: "src/runtime/upstream/connection.ts",
    line: /else this\.complete\(false\);/,
    from: "false",
    why: "a connection whose end is the end of an answer is not used again in any case",
  },
  {
    file: "src/runtime/http1/body.ts",
    from: "this.transient = transient;",
    why: "what could stay where it is may be copied",
  },
  {
    file: "src/runtime/http1/answerWriter.ts",
    from: /^bytes\.length \+ this\.held\.length <= /,
    to: /\) < \(/,
    why: "a size that was measured best; one more makes no difference",
  },
  { file: "src/runtime/http1/headReader.ts", line: /^ {2}next = 0;/, why: "set before it is asked" },
  {
    file: "src/runtime/http2/connection.ts",
    line: /^const DRAIN_PING = /,
    why: "any two numbers: what counts is that the client sends them back",
  },
  {
    file: "src/runtime/http1/clientInput.ts",
    line: /^ {4}this\.paused = false;/,
    from: "this.paused = false;",
    why: "who reads on has said so before; a connection that lingers is only looked at more often",
  },
  {
    file: "src/runtime/process/descriptorWatch.ts",
    from: "this.lookAt = now + LOOK_MS;",
    why: "looks four times a second instead of every few seconds; what is found is said once all the same",
  },
  {
    file: "src/runtime/acme/ledger.ts",
    from: /^(?:longest\.until > now|at > now - ms)$/,
    why: "what ends at this moment is left out by each of the two",
  },
  {
    file: "src/runtime/acme/schedule.ts",
    line: /const ahead = /,
    from: "0",
    why: "no clock is set back to 1970",
  },
  {
    file: "src/diagnosis/expectedResponses.ts",
    from: 'parseHost(request.host)?.serverName ?? ""',
    why: "the host of every request that is made here can be parsed",
  },
  {
    file: "src/kubernetes/podProblems.ts",
    from: "places.indexOf(place)",
    why: "of equal places it does not matter which is the first",
  },
  {
    file: "src/render/kubernetes/providerBlocks.ts",
    line: /^ {2}"(?:binaryData|data|limits|requests)",$/,
    why: "no file and no resource is called as a list that is renamed",
  },
  {
    file: "src/activation/serviceSteps.ts",
    from: /\.filter\(\(unit\) => unit !== undefined\)$/,
    why: "of a unit that is not there nothing is known or wanted, so there is nothing to do",
  },
  {
    file: "src/diagnosis/logState.ts",
    from: "/^Uid:\\s+(\\d+)/m",
    to: "/Uid:\\s+(\\d+)/m",
    why: "the kernel writes the word once",
  },
  {
    file: "src/model/serverName.ts",
    from: 'value.indexOf(":")',
    why: "a second colon fits neither a name nor a port",
  },
  {
    file: "src/runtime/http2/outbox.ts",
    line: /^ +give\(|pool\.free\.push/,
    why: "a buffer that does not go back to the pool goes to the garbage collector",
  },
  {
    file: "src/runtime/http2/flowControl.ts",
    line: /^ {4}if \(!stream\.queued\) return;/,
    from: "if (!stream.queued) return;",
    why: "a stream that is not among the others is not found there",
  },
  {
    file: "src/runtime/actions/staticFiles.ts",
    line: /pieces\.length === 1 \? pieces\[0\]!/,
    to: "(1 + 1)",
    why: "what is in one piece is the same once it was joined",
  },
  {
    file: "src/runtime/actions/proxy.ts",
    from: "this.wantsList = exchange.sendLines === undefined;",
    why: "the list is made when it is asked for",
  },
  {
    file: "src/runtime/actions/fileLookup.ts",
    line: /throwIfNoEntry: false/,
    from: "false",
    why: "the error of a file that is gone comes to the same",
  },
  {
    file: "src/runtime/actions/fileTransfer.ts",
    line: /this\.longest = segments\.reduce/,
    from: "0",
    why: "a file of no bytes has no transfer",
  },
  {
    file: "src/runtime/upstream/requestWriter.ts",
    from: "socket.writableLength < GATHERED_BYTES_MAX",
    to: /<=/,
    why: "a size that was measured best; one more makes no difference",
  },
  {
    file: "src/runtime/logs/logFile.ts",
    line: /writes < 3 \|\| isFull\(\); writes\+\+/,
    from: "3",
    why: "a fourth time there is nothing left to write",
  },
  {
    file: "src/runtime/http1/syntax.ts",
    line: /new Uint8Array\(256\)/,
    why: "an entry that no byte reads",
  },
  { file: "src/runtime/http1/syntax.ts", from: "0xff", why: "the entry after the last byte is not there" },
  {
    file: "src/runtime/http1/syntax.ts",
    line: /^export const NAME_BYTES/,
    from: "2",
    why: "a mark that differs from that of every other byte, and is larger",
  },
  {
    file: "src/runtime/http1/fieldNames.ts",
    line: /^ {2}const mixed = length \* 67/,
    why: "any function of length and letters finds a name where it was put",
  },
  {
    file: "src/runtime/http1/fieldNames.ts",
    line: /^const SLOTS = 256;/,
    why: "names share slots, and are found in them all the same",
  },
  {
    file: "src/runtime/http1/fieldNames.ts",
    line: /\? 1 << SINGLE_FIELDS/,
    from: "1",
    why: "still a bit of its own for each field",
  },
  {
    file: "src/runtime/http1/fields.ts",
    line: /const end = .*length - 2;/,
    from: "2",
    why: "no field line is shorter than four bytes, so none begins there",
  },
  {
    file: "src/runtime/http1/headReader.ts",
    line: /Math\.max\(1024, needed \* 2\)/,
    to: "(1024 + 1)",
    why: "room for what may come: how much is a matter of speed",
  },
  {
    file: "src/runtime/http1/headReader.ts",
    line: /Math\.max\(1024, needed \* 2\)/,
    to: "(2 + 1)",
    why: "room for what may come: how much is a matter of speed",
  },
  {
    file: "src/runtime/http1/headReader.ts",
    from: "this.partial.length < needed",
    why: "a buffer that just fits may be made anew",
  },
  {
    file: "src/runtime/http1/headReader.ts",
    line: /before - 3\)/,
    to: "(3 + 1)",
    why: "one byte more is searched, in which the end cannot begin",
  },
  {
    file: "src/runtime/http1/headReader.ts",
    line: /this\.bytesMax \+ 4\)/,
    to: "(4 + 1)",
    why: "one byte more is kept of what is refused",
  },
  {
    file: "src/runtime/http1/headReader.ts",
    from: "from + text.length < to",
    why: "where there is no more, the same text is searched again",
  },
  {
    file: "src/runtime/http1/headReader.ts",
    from: "text.length - end > USUAL_BYTES_MAX",
    why: "decides what the text of a head keeps in memory, not what it says",
  },
  {
    file: "src/runtime/http1/body.ts",
    line: /private transient = true;/,
    why: "set with every read, before it is asked",
  },
  {
    file: "src/runtime/http1/exchange.ts",
    line: /^let last = \{/,
    why: "nothing is the same as the last before there is one: its date is empty",
  },
  {
    file: "src/runtime/logs/logFormat.ts",
    line: /again/,
    why: "when a string is made one piece is a matter of speed",
  },
  {
    file: "src/runtime/logs/logFormat.ts",
    from: "code < 0x100",
    why: "no char between U+00FF and the Unicode line ends comes here",
  },
  {
    file: "src/runtime/logs/logFormat.ts",
    line: /code < 0x100/,
    from: "0x100",
    why: "no char between U+00FF and the Unicode line ends comes here",
  },
  {
    file: "src/runtime/exchange/singleFields.ts",
    line: /^const LENGTHS|seen \|= 1 << at|seen & \(1 << at\)/,
    from: "1",
    why: "a length whose bit is set for nothing costs a look-up; bits of fields only have to differ",
  },
  {
    file: "src/runtime/exchange/singleFields.ts",
    line: /^const LENGTHS/,
    from: "0",
    why: "a length whose bit is set for nothing costs a look-up",
  },
  {
    file: "src/runtime/exchange/latin1.ts",
    from: '(bytes as Sliced).latin1Slice?.(from, to) ?? (bytes as Buffer).toString("latin1", from, to)',
    why: "every Node that the tests run on has the method",
  },
  {
    file: "src/runtime/exchange/latin1.ts",
    from: '"latin1"',
    why: "every Node that the tests run on has the method, so this is never called",
  },
  {
    file: "src/runtime/http2/huffman.ts",
    line: /new Uint32Array\(\(BROKEN \+ 1\) \* 16\)/,
    to: "(16 + 1)",
    why: "entries behind the last that is read",
  },
  {
    file: "src/runtime/http2/huffman.ts",
    line: /new Uint32Array\(\(BROKEN \+ 1\) \* 16\)/,
    to: "(1 + 1)",
    why: "entries behind the last that is read",
  },
  {
    file: "src/runtime/http2/huffman.ts",
    line: /^const (?:STATE_SHIFT|BROKEN) =/,
    why: "there is room for another bit, and for another number that no state has",
  },
  {
    file: "src/runtime/http2/closedStreams.ts",
    line: /new Int32Array\(256\)|private at = 0/,
    why: "which entry of the ring is the first does not matter, nor one that is never written",
  },
  {
    file: "src/runtime/http2/floodGuard.ts",
    line: /private since = 0;/,
    why: "the clock says more than a second when a connection begins",
  },
  {
    file: "src/runtime/http2/hpackDecoder.ts",
    line: /shift <= 21/,
    from: "21",
    why: "shifts are multiples of seven",
  },
  {
    file: "src/runtime/http2/hpackDecoder.ts",
    from: "length * 2 > scratch.length",
    to: "(length * 2) >= (scratch.length)",
    why: "a buffer that just fits may be made anew",
  },
  {
    file: "src/runtime/http2/hpackEncoder.ts",
    line: /let bytes = 256 \+ 2 \* head\.date\.length|headers\[i\]!\.length \+ 8;/,
    to: "(256 + 1)",
    why: "more room than is needed",
  },
  {
    file: "src/runtime/http2/hpackEncoder.ts",
    line: /let bytes = 256 \+ 2 \* head\.date\.length/,
    why: "room for two short fields is there twice",
  },
  {
    file: "src/runtime/http2/hpackEncoder.ts",
    line: /headers\[i\]!\.length \+ 8;/,
    to: "(8 + 1)",
    why: "more room than is needed",
  },
  {
    file: "src/runtime/http2/hpackEncoder.ts",
    from: "length <= RECURRING_BYTES_MAX",
    why: "a head that is kept is the same as one that is made anew",
  },
  {
    file: "src/runtime/http2/hpackEncoder.ts",
    from: "names.size < NAMES_MAX",
    why: "a name that is kept is the same as one that is made anew",
  },
  {
    file: "src/runtime/http2/frames.ts",
    line: /private (?:padding = 0|paddingKnown = true|dataFlags = 0);/,
    why: "set when a DATA frame begins, and not asked before",
  },
  {
    file: "src/runtime/http2/frames.ts",
    from: "dataTo > at",
    to: "(dataTo) >= (at)",
    why: "an empty piece is no piece to who counts its bytes",
  },
  {
    file: "src/runtime/http2/flowControl.ts",
    from: "size <= BYTEWISE_MAX",
    why: "two ways to copy the same bytes",
  },
  {
    file: "src/runtime/actions/proxy.ts",
    line: /Math\.max\(head\.bodyLength, -1\)/,
    from: "1",
    why: "any length below 0 is not known",
  },
  {
    file: "src/runtime/upstream/connection.ts",
    line: /Math\.max\(this\.remaining, -1\)/,
    from: "1",
    why: "the only lengths below 0 are -1 and -2, which is as good as not known",
  },
  {
    file: "src/runtime/http1/exchange.ts",
    from: "this.route?.config.requestBodyBytesMax ?? 0",
    why: "no number limits nothing, as 0 does",
  },
  {
    file: "src/runtime/http2/exchange.ts",
    from: "this.route?.config.requestBodyBytesMax ?? 0",
    why: "no number limits nothing, as 0 does",
  },
  {
    file: "src/runtime/http1/exchange.ts",
    line: /sendData\(chunk: Uint8Array, transient = false\)/,
    why: "what could stay where it is may be copied",
  },
  {
    file: "src/runtime/http2/exchange.ts",
    line: /sendData\(chunk: Uint8Array, transient = false\)/,
    why: "what could stay where it is may be copied",
  },
  {
    file: "src/runtime/http2/frameHandler.ts",
    line: /checkOrder\(type: number, stream: number, flags = 0\)/,
    why: "only flags of SETTINGS count, and these are given",
  },
  {
    file: "src/runtime/node/boundSockets.ts",
    line: /const \{ address = "", port = 0 \}/,
    why: "what has no port has no address, and is not used",
  },
  ...sizes("http1/headReader.ts", "USUAL_BYTES_MAX"),
  ...sizes("http1/body.ts", "SMALL_BYTES_MAX"),
  ...sizes(
    "http1/answerWriter.ts",
    "JOINED_BYTES_MAX",
    "JOINED_KEPT_BYTES_MAX",
    "PIECE_BYTES",
    "SECURE_PIECE_BYTES",
    "BATCHED_TEXT_MAX",
  ),
  ...sizes("http2/outbox.ts", "OUTBOX_DATA_BYTES", "SMALL_BYTES", "CUT_BYTES_MIN", "max"),
  ...sizes("http2/connection.ts", "OUTBOX_BYTES_MAX"),
  ...sizes("http2/flowControl.ts", "BYTEWISE_MAX"),
  ...sizes("http2/hpackEncoder.ts", "RECURRING_BYTES_MAX", "NAMES_MAX", "LENGTH_BYTES_MAX"),
  ...sizes("upstream/requestWriter.ts", "GATHERED_BYTES_MAX", "GATHERED_PIECES_MAX"),
  ...sizes("exchange/receiveBuffer.ts", "VIEWS_MAX"),
  ...sizes("exchange/pieceQueue.ts", "JOINED_BYTES", "BLOCK_BYTES_MAX"),
  ...sizes("actions/fileTransfer.ts", "POOL_MAX"),
  ...sizes("node/probe.ts", "LARGE_BYTES"),
  ...sizes("node/socketHolder.ts", "SHARED_BYTES"),
  ...sizes("listen/listener.ts", "BACKLOG"),
];

/** Why a fault changes nothing; undefined if it does. */
export function equivalence(fault: Fault): string | undefined {
  return EQUIVALENTS.find((one) => isOf(one, fault))?.why;
}

export function isOf({ file, line, from, to }: Equivalent, fault: Fault): boolean {
  return (
    fault.file.startsWith(file) &&
    isLike(fault.from, from) &&
    isLike(fault.to, to) &&
    (line === undefined || line.test(lineOf(fault)))
  );
}

function isLike(text: string, like: string | RegExp | undefined): boolean {
  return like === undefined || (typeof like === "string" ? text === like : like.test(text));
}

function lineOf({ file, line }: Fault): string {
  let lines = sources.get(file);
  if (lines === undefined) sources.set(file, (lines = readFileSync(join(ROOT, file), "utf8").split("\n")));
  return lines[line - 1] ?? "";
}

const sources = new Map<string, readonly string[]>();
