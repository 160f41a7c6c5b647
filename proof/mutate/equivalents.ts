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
    why: "a size that is large enough, or was measured best: one more makes no difference",
  }));

export const EQUIVALENTS: readonly Equivalent[] = [
  {
    file: "src/asOwner/mediaWalk.ts",
    line: /^const BATCH = /,
    why: "a size; one more makes no difference",
  },
  {
    file: "src/asOwner/mediaWalk.ts",
    from: "i < names.length",
    why: "there is nothing in one more batch",
  },
  {
    file: "src/asOwner/mediaWalk.ts",
    from: "if (at === undefined) continue;",
    why: "a tree that was not reached has nothing in it, and nothing is within it",
  },
  ...["acting.ts", "mediaWalk.ts"].map((file) => ({
    file: `src/asOwner/${file}`,
    line: /if \(name === "" \|\| name === "\."\) continue;/,
    to: /^(?:|""|\(name === ""\) && \(name === "\."\))$/,
    why: "such a name leads to the directory that was reached, which is looked at once more; `/` is root's",
  })),
  {
    file: "src/asOwner/ownerFile.ts",
    from: "0o600",
    why: "the file is empty until it has the mode of the one that it replaces",
  },
  {
    file: "src/asOwner/ownerFile.ts",
    line: /const \{ bytesRead, buffer \} = /,
    from: /^(?:64|1024)$/,
    why: "the size of a piece; what is read is the same",
  },
  {
    file: "src/asOwner/asOwner.ts",
    line: /UV_USE_IO_URING/,
    from: '"0"',
    why: "libuv reads an empty value as 0",
  },
  {
    file: "src/asOwner/asOwner.ts",
    from: "child.unref();",
    why: "seen only where the kernel cannot end a process, as one that waits for a server of files",
  },
  {
    file: "src/asOwner/acting.ts",
    from: "10_000",
    why: "how long id(1) may take; a millisecond more makes no difference",
  },
  ...["src/activation/", "src/diagnosis/"].map((file) => ({
    file,
    line: /^const (?!STOP_|CERTIFICATE_|ADDRESS_)(?:\w+_)?(?:MS|SECONDS) = [\d_]+;/,
    why: "how long at most a program or a peer is waited for, or how often it is asked: a little more makes no difference",
  })),
  {
    file: "src/activation/",
    from: /^(?:performance\.now\(\)[^|&]* > |lastError\.at < performance|left < 0|nextAttempt > Date\.now\(\))/,
    to: /^\(.*\) [<>]= \(.*\)$/,
    why: "the very moment at which a time is over",
  },
  {
    file: "src/activation/verification.ts",
    line: /attempts\+\+ > 4|let attempts = 0;/,
    from: /^(?:attempts\+\+ > 4|4)$/,
    to: /^\(4 \+ 1\)$|>=/,
    why: "how often a daemon that starts is asked for settings that are its owner's: once more or less makes no difference",
  },
  {
    file: "src/activation/verification.ts",
    line: /let attempts = 0;/,
    from: "0",
    why: "the same: once less",
  },
  {
    file: "src/activation/detached.ts",
    line: /^const ASKS_PER_LOOK = |for \(let asks = 1;/,
    from: /^\d+$/,
    why: "how often systemd is asked whether a command still runs",
  },
  {
    file: "src/activation/detached.ts",
    from: "asks % ASKS_PER_LOOK !== 0",
    why: "systemd is asked more often whether a command still runs",
  },
  {
    file: "src/diagnosis/mediaFile.ts",
    line: /^const OWNERS_MAX = /,
    why: "a bound on a search; one directory more makes no difference",
  },
  {
    file: "src/diagnosis/mediaFile.ts",
    line: /looked < OWNERS_MAX && folders\.length > 0/,
    to: /<= \(OWNERS_MAX\)|>= \(0\)/,
    why: "a bound on a search, in which nothing happens without a folder",
  },
  {
    file: "src/diagnosis/mediaPermissions.ts",
    line: /inside instanceof Error \|\|/,
    to: /&&/,
    why: "who acts on a path is then found out by the path itself: by the same rules, with the same outcome",
  },
  {
    file: "src/diagnosis/certificateRows.ts",
    to: "(notAfter) <= (now)",
    why: "a certificate that ends in this very millisecond",
  },
  {
    file: "src/diagnosis/gather.ts",
    from: "unit?.mainPid ?? 0",
    why: "a process without a number is as little there as process 0",
  },
  {
    file: "src/diagnosis/command.ts",
    line: /maxBuffer: 16 << 20/,
    why: "far more than a command says; one more makes no difference",
  },
  {
    file: "src/diagnosis/expectation.ts",
    from: 'answer.body ?? ""',
    why: "no body is then read as the word undefined, which is not an error page",
  },
  {
    file: "src/diagnosis/probe.ts",
    line: /noDelay: true/,
    from: "true",
    why: "only how soon small writes leave",
  },
  {
    file: "src/diagnosis/probe.ts",
    to: "/:\\d*$/",
    why: "a host does not end with a colon",
  },
  {
    file: "src/diagnosis/mediaPermissions.ts",
    line: /^const ENTRIES_MAX = /,
    why: "a bound on a search; one entry more makes no difference",
  },
  {
    file: "src/diagnosis/mediaPermissions.ts",
    from: /^this\.violations\.size < SHOWN_MAX$/,
    to: /<=/,
    why: "a bound on what is shown; one more makes no difference",
  },
  {
    file: "src/diagnosis/mediaPermissions.ts",
    from: /\.filter\(\(root\) => root !== null\)$/,
    why: "nothing is within a tree that is not there",
  },
  {
    file: "src/activation/stagedCheck.ts",
    from: "60",
    why: "seconds that a check may take at most: one more makes no difference",
  },
  {
    file: "src/activation/",
    line: /[sS]econds \* 1000|performance\.now\(\)\) \/ 1000/,
    from: "1000",
    why: "how long at most something is waited for: a thousandth more makes no difference",
  },
  {
    file: "src/cli/",
    line: /[ (.]timeout \* 1000/,
    from: "1000",
    why: "how long at most an answer is waited for: a thousandth more makes no difference",
  },
  {
    file: "src/activation/detached.ts",
    from: "child.unref();",
    why: "a command that has written its exit code ends at once",
  },
  {
    file: "src/activation/detached.ts",
    line: /^ {4}rmSync\(file, \{ force: true \}\)/,
    from: "true",
    why: "matters only where two runs show the same record at the same moment",
  },
  {
    file: "src/activation/detached.ts",
    from: "size - this.at",
    why: "more room than is needed",
  },
  {
    file: "src/activation/durableFiles.ts",
    line: /\{ mode: 0o600, flag: "wx" \}/,
    from: "0o600",
    why: "who may execute a file, but not read it, can do nothing with it; and it gets its own mode at once",
  },
  {
    file: "src/activation/lock.ts",
    from: "seconds > 0",
    to: "(seconds) >= (0)",
    why: "`flock --wait 0` is `flock --nonblock`",
  },
  {
    file: "src/activation/lock.ts",
    from: "4096",
    why: "more room than is needed",
  },
  {
    file: "src/activation/drift.ts",
    line: /\["flock", "--nonblock", store\.lock, "true"\]/,
    from: '"true"',
    why: "only whether the lock is free is asked, and whatever runs then has another status than a lock that is held",
  },
  {
    file: "src/activation/rollBack.ts",
    from: '"unfit"',
    why: "what is neither a file nor a link differs from every state",
  },
  {
    file: "src/activation/preconditions.ts",
    from: "if (!parsed.ok) return [];",
    to: "",
    why: "a config that is not valid was refused before",
  },
  {
    file: "src/runtime/load/renewalWatch.ts",
    line: /^ {4}if \(unfit !== undefined\)/,
    why: "parameters that OpenSSL would refuse for a handshake do not pass loadDhparam",
  },
  {
    file: "src/activation/programs.ts",
    from: "await rm(path, { force: true });",
    why: "a program that cannot be linked because one is there is copied over it, which takes longer, and the room of a copy",
  },
  {
    file: "src/activation/loadedRules.ts",
    line: /"unshare", "--net", "sh"/,
    from: '"nft"',
    why: "the name by which the shell calls itself",
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
    from: "/^([^=:]*)([=:])[ \\t]*/",
    to: "/([^=:]*)([=:])[ \\t]*/",
    why: "a match begins at the first character, if there is one; the anchor saves looking for others",
  },
  {
    file: "src/applicationSettings/python/tokens.ts",
    from: "at < text.length",
    why: "past the end there is nothing that ends a string or a field",
  },
  {
    file: "src/applicationSettings/diff.ts",
    to: "(head) <= (room)",
    why: "a change leaves some line different, so the lines differ past the end of the shorter one",
  },
  {
    file: "src/applicationSettings/webApplicationFile.ts",
    to: "(i) >= (last)",
    why: "the last assignment itself is not another kind of binding",
  },
  {
    file: "src/applicationSettings/webApplicationFile.ts",
    line: /previous\.to - 1/,
    to: "(1 + 1)",
    why: "one character more in front of a line end changes nothing",
  },
  {
    file: "src/applicationSettings/python/bindings.ts",
    to: /^\(i\) <= \((?:lastAssigning|loopTargets)\)$/,
    why: "an operator or `in` is not the name",
  },
  {
    file: "src/applicationSettings/databaseOverrides.ts",
    from: "12",
    why: "one byte more of a random name",
  },
  {
    file: "src/applicationSettings/python/tokens.ts",
    from: "/\\.?\\d[\\w.]*/y",
    to: "/\\.?\\d[\\w.]+/y",
    why: "a lone digit is then an operator of one character, which assigns nothing and is no literal either",
  },
  {
    file: "src/constructs/props/propTable.ts",
    line: /\.\.\.any, required: "model" \};$/,
    from: '"model"',
    why: "a mark for the compiler: the model reports what is missing",
  },
  {
    file: "src/constructs/props/lateChecks.ts",
    from: "nodes.some((n) => n.minimum !== undefined)",
    to: "nodes.every((n) => n.minimum !== undefined)",
    why: "what is a number in a range or something else has words or values that are looked at before",
  },
  {
    file: "src/constructs/activation.ts",
    from: "a.path < b.path",
    to: "(a.path) <= (b.path)",
    why: "no two files of a host have the same path",
  },
  {
    file: "src/model/address.ts",
    line: /^ {2}\["::1", 128, "loopback"\],$/,
    from: "128",
    why: "an address has no more bits",
  },
  {
    file: "src/model/serverName.ts",
    from: "if (value === last.value) return last.parts;",
    to: "",
    why: "the same parts, found once more",
  },
  {
    file: "src/constructs/acme.ts",
    line: /protocol: "https", tls \}/,
    from: "443",
    why: "a placeholder: names are proved on any port that the listener has",
  },
  {
    file: "src/kubernetes/props.ts",
    from: "autoscaling?.min ?? 1",
    why: "without `autoscaling` there is no number to compare",
  },
  {
    file: "src/constructs/props/checks.ts",
    line: /^const LISTENER: |port: i \+ 1/,
    from: "1",
    why: "a placeholder: any port would do",
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
    file: "src/constructs/props/tokens.ts",
    line: /^ {2}\(_, number\) => .*(?:20_000|% 250|% 100)|30_000 \+/,
    from: /^(?:250|100|20_000|30_000)$/,
    why: "a placeholder: any port or number of its kind would do",
  },
  {
    file: "src/model/actions/forwarding.ts",
    from: "/^(https?):\\/\\/([^/?#]*)(.*)/i",
    to: "/^(https?):\\/\\/([^/?#]+)(.*)/i",
    why: "an empty authority is not a host, so there is no target either way",
  },
  {
    file: "src/model/actions/forwarding.ts",
    line: /\bagain: false|last\.again|last\.text = onePiece|this\.last = \{ host/,
    why: "the same text, joined once more",
  },
  {
    file: "src/model/actions/forwarding.ts",
    from: /^if \(request\.plainLines !== undefined && !this\.examines/,
    to: "",
    why: "the same head, made from every field by itself",
  },
  {
    file: "src/model/actions/forwarding.ts",
    line: /^ {6}claimed: false,$/,
    from: "false",
    why: "without claims, the same fields are made anew",
  },
  {
    file: "src/model/actions/forwarding.ts",
    from: "this.replaced.size > 0",
    to: "(this.replaced.size) >= (0)",
    why: "nothing is in an empty set",
  },
  {
    file: "src/model/actions/fieldFates.ts",
    line: /^ {4}if \(known !== undefined\) return known;|^ {4}if \(fates\.size < 1024 && name\.length <= 64\)/,
    from: /^(?!fates\.size < 1024 && )/,
    to: /^(?!\(known\) ===|!\()/,
    why: "a fate that is kept is the same as one that is looked up; how many are kept was chosen freely",
  },
  {
    file: "src/model/config/parse.ts",
    line: /^ +jitless: true,/,
    to: "false",
    why: "compiled or not, a schema takes the same",
  },
  {
    file: "src/model/config/parse.ts",
    from: "errors.every(isWithin)",
    why: "a value is wrong as a whole, or something in it is",
  },
  {
    file: "src/model/config/parse.ts",
    line: /code: "config\.wrong-type", message: issue\.message/,
    why: "no field makes another kind of issue",
  },
  {
    file: "src/model/address.ts",
    line: /isIPv6\(address\);/,
    from: '":"',
    to: '""',
    why: "decides only whether Node's expression is asked",
  },
  {
    file: "src/model/config/parse.ts",
    from: "/ at position (\\d+)$/",
    to: "/ at position (\\d*)$/",
    why: "a message of the engine that ends so has a number there",
  },
  {
    file: "src/runtime/",
    // Without a unit that others are made of, what messages name, and the longest that a timer can wait.
    line: /^(?:export )?const (?!(?:SECOND|START|READY|TAKE_OVER|EXCHANGE|TIMER_MAX)_)\w+_MS = [\d_]+;/,
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
    line: /^ {2}private (?:remaining|informational) = 0;|^ {2}private (?:answered|requestSent|done) = false;/,
    why: "set with the request or the head, before anything but the size of a read depends on it",
  },
  {
    file: "src/runtime/upstream/connection.ts",
    line: /^ {4}(?:readDirectly\(this\.socket|this\.request\.connected\(\))/,
    why: "two ways to read or write the same bytes",
  },
  {
    file: "src/runtime/upstream/connection.ts",
    line: /this\.buffer\.fit\(Math\.max\(this\.remaining, -1\), /,
    from: /^(?:Math\.max\(this\.remaining, -1\)|1)$/,
    why: "how much is read at once: a matter of speed",
  },
  {
    file: "src/runtime/upstream/pool.ts",
    from: "this.idleConnections.indexOf(connection)",
    why: "a connection is there once",
  },
  {
    file: "src/runtime/upstream/pool.ts",
    from: "this.shares.queued > 0",
    to: /^\(this\.shares\.queued\) >= /,
    why: "where nobody waits nobody is served",
  },
  {
    file: "src/runtime/actions/proxy.ts",
    line: /answered: true, unsent: false \}\);/,
    from: "false",
    why: "what was answered is not sent again in any case",
  },
  {
    file: "src/runtime/actions/proxy.ts",
    line: /sendHead\(101, head\.reason, headers, -1\)/,
    from: "1",
    why: "a 101 has no length, whatever is said of it",
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
    from: "this.batched.length > BATCHED_TEXT_MAX",
    to: /\) >= \(/,
    why: "a size; one more makes no difference",
  },
  {
    file: "src/runtime/http1/answerWriter.ts",
    from: /^bytes\.length \+ this\.held\.length <= /,
    to: /\) < \(/,
    why: "a size that was measured best; one more makes no difference",
  },
  { file: "src/runtime/http1/headReader.ts", line: /^ {2}(?:next|at) = 0;/, why: "set before it is asked" },
  {
    file: "src/runtime/http2/connection.ts",
    line: /^const DRAIN_PING = /,
    why: "any two numbers: what counts is that the client sends them back",
  },
  {
    file: "src/runtime/node/socketHolder.ts",
    line: /^ {2}thread\.on\("error", /,
    why: "the thread catches whatever its few calls can throw",
  },
  {
    file: "src/runtime/node/socketHolder.ts",
    line: /^const SHARED_BYTES = |const state = new Int32Array\(shared, 0, 2\)/,
    from: /^(?:1024|2)$/,
    why: "more room than is used",
  },
  {
    file: "src/runtime/node/socketHolder.ts",
    from: /^(?:port \?\? )?0$/,
    line: /address: address \?\? ""/,
    why: "a socket without a port is a Unix socket, which is not used",
  },
  {
    file: "src/cli/previewConfig.ts",
    from: '"upstreams["',
    why: "what moving makes wrong is a listener or an upstream",
  },
  {
    file: "src/testing/files.ts",
    line: /\? -1 : 1\)/,
    from: "1",
    to: "(1 + 1)",
    why: "any number above 0 sorts alike",
  },
  {
    file: "src/model/resolution.ts",
    line: /const value = line\.slice\(/,
    from: "1",
    why: "what follows the colon is a space",
  },
  {
    file: "src/runtime/http1/headReader.ts",
    from: "from + text.length",
    to: "from - text.length",
    why: "text that holds all that has arrived is searched once more",
  },
  {
    file: "src/runtime/http2/hpackEncoder.ts",
    from: "if (this.recurs(head)) return undefined;",
    why: "a head like the last one is checked once more",
  },
  {
    file: "src/runtime/node/probe.ts",
    line: /adopt\(far, moved\.buffer, moved\.take\)!\.on\(/,
    from: '"error"',
    why: "both ends are in this process, and neither fails",
  },
  {
    file: "src/runtime/process/worker.ts",
    line: /^ {2}process\.stderr\.on\("error"/,
    why: "nothing is written there until the process ends, and its end waits for no error",
  },
  {
    file: "src/runtime/process/descriptorWatch.ts",
    from: "this.lookAt = now + LOOK_MS;",
    why: "looks four times a second instead of once; what is found is reported when it changes, all the same",
  },
  {
    file: "src/runtime/acme/ledger.ts",
    from: /^(?:longest\.until > now|at > now - ms)$/,
    to: /^\(.*\) >= \(.*\)$/,
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
    why: "the default server answers for a name that is not known and for none",
  },
  {
    file: "src/kubernetes/podProblems.ts",
    from: "places.indexOf(place)",
    why: "of equal places it does not matter which is the first",
  },
  {
    file: "src/activation/serviceSteps.ts",
    from: /\.filter\(\(unit\) => unit !== undefined\)$/,
    why: "of a unit that is not there nothing is known or wanted, so there is nothing to do",
  },
  {
    file: "src/diagnosis/space.ts",
    line: /files > 0 && ffree/,
    from: "0",
    why: "no file system has room for a single file",
  },
  {
    file: "src/activation/fileState.ts",
    line: /const buffer = Buffer\.allocUnsafe\(/,
    from: /^(?:Math\.min\(.*|4096|1|20)$/,
    why: "the size of a piece; what is read is the same",
  },
  {
    file: "src/activation/fileState.ts",
    line: /^ {2}if \(a\.kind === "link" && |^ {2}if \(a\.kind !== "file" \|\| /,
    to: /^$|^\(a\.kind === "link"\) \|\| |^\(a\.kind !== "file"\) && /,
    why: "both are of one kind here, and two that are absent have nothing in which they could differ",
  },
  {
    file: "src/activation/transition.ts",
    line: /\.replaceAll\(\/\(https/,
    from: /^\//,
    why: "a URL has a host, and brackets have an address in them",
  },
  {
    file: "src/activation/transition.ts",
    line: /\/m\.test\(await readFile\(path, "utf8"\)\)/,
    from: '"utf8"',
    why: "an expression reads bytes as UTF-8 as well",
  },
  {
    file: "src/diagnosis/logState.ts",
    from: "/^Uid:\\s+(\\d+)/m",
    why: "the kernel writes the word once, with space and a number after it",
  },
  {
    file: "src/model/certificateName.ts",
    line: /^ {2}return dot === -1 \? "" : /,
    from: "1",
    why: "the one letter after `*` that is left of such a name is not a wildcard that anybody has",
  },
  {
    file: "src/model/serverName.ts",
    from: 'value.indexOf("]")',
    why: "what has a second bracket is not a host either way",
  },
  {
    file: "src/model/tlsPolicy.ts",
    to: /CAMELLIA\)\\d\*-/,
    why: "no suite is called AES-, ARIA- or CAMELLIA- without a length",
  },
  {
    file: "src/model/target.ts",
    from: /NEEDS_WORK\.test/,
    to: "",
    why: "decoding and resolving a plain path gives the same path, later",
  },
  {
    file: "src/model/serverName.ts",
    from: 'value.indexOf(":")',
    why: "a second colon fits neither a name nor a port",
  },
  {
    file: "src/runtime/http2/outbox.ts",
    line: /^ +give\(|pool\.free\.push/,
    to: /^$|^\(pool\.free\.length\) <= /,
    why: "a buffer that does not go back to the pool goes to the garbage collector",
  },
  {
    file: "src/runtime/http2/outbox.ts",
    line: /^const LARGE_BYTES = /,
    why: "what does not fit a buffer of the pool gets one of its own",
  },
  {
    file: "src/runtime/http2/outbox.ts",
    line: /^ {2}generation = 0;/,
    why: "what counts is whether it is still the same",
  },
  {
    file: "src/runtime/http2/outbox.ts",
    line: /^const NONE = Buffer\.alloc\(0\)/,
    why: "no frame fits a byte either",
  },
  {
    file: "src/runtime/http2/outbox.ts",
    line: /pools\.find\(\(\{ size \}\) => bytes <= size\)|bytes \* 2\)/,
    to: /\) < \(|\(2 \+ 1\)/,
    why: "more room than is needed",
  },
  {
    file: "src/runtime/http2/outbox.ts",
    to: "(this.at + bytes) >= (this.buffer.length)",
    why: "more room than is needed",
  },
  {
    file: "src/runtime/actions/fileLookup.ts",
    from: "if (!DESCRIPTOR_LINKS) return pathOfFile(path, stats);",
    to: "",
    why: "for systems other than Linux, which need the longer way",
  },
  {
    file: "src/cli/certificatesCommand.ts",
    line: /^const DAY_MS = /,
    from: "3_600_000",
    why: "a day that is 24 milliseconds longer",
  },
  {
    file: "src/runtime/http2/hpackEncoder.ts",
    from: "outbox.at - from",
    why: "a block counts as longer than it is, so it may not be remembered, and is encoded anew",
  },
  {
    file: "src/runtime/http2/outbox.ts",
    from: "if (this.scheduled) return;",
    to: "",
    why: "what comes to the end of a turn twice finds nothing to write the second time",
  },
  {
    file: "src/runtime/http2/outbox.ts",
    from: "at > 0",
    to: "(at) >= (0)",
    why: "to write nothing does nothing",
  },
  {
    file: "src/runtime/http2/fieldBlock.ts",
    line: /^ {2}(?:flags|private length|private continuations) = 0;/,
    why: "set when a block begins, and not asked before",
  },
  {
    file: "src/runtime/http2/fieldBlock.ts",
    line: /> this\.bytes\.length\) \{|const grown = /,
    to: /\+ \(from\)$|>=|\(2 \+ 1\)/,
    why: "more room than is needed",
  },
  {
    file: "src/runtime/http2/frames.ts",
    from: "chunk.length - at < FRAME_HEAD_BYTES",
    to: "(chunk.length - at) <= (FRAME_HEAD_BYTES)",
    why: "a head that just fits may be read as one that is split",
  },
  {
    file: "src/runtime/http2/hpackDecoder.ts",
    line: /private (?:newest|at) = 0;/,
    why: "which entry of the ring is the first does not matter, and the position is set before it is asked",
  },
  {
    file: "src/runtime/http2/hpackDecoder.ts",
    line: /const coded = /,
    to: /\) > \(|\(0x80 \+ 1\)|\(128 \+ 1\)/,
    why: "an empty string is the same with Huffman coding and without",
  },
  {
    file: "src/runtime/http2/hpackDecoder.ts",
    line: /length \* 2 > scratch\.length/,
    to: "(2 + 1)",
    why: "more room than is needed",
  },
  {
    file: "src/runtime/http2/hpackEncoder.ts",
    from: "i < block.length",
    to: "(i) <= (block.length)",
    why: "one byte more is written where the next one goes",
  },
  {
    file: "src/runtime/http2/hpackEncoder.ts",
    line: /headers\[i\] !== before\[i\]/,
    to: "(i) <= (headers.length)",
    why: "after the last one there is nothing in both",
  },
  {
    file: "src/runtime/http2/hpackEncoder.ts",
    line: /length <= RECURRING_BYTES_MAX && head\.date !== ""\)$/,
    to: '(head.date) === ("")',
    why: "a head that is kept is the same as one that is made anew",
  },
  {
    file: "src/runtime/http2/hpackTables.ts",
    line: /code >= 0x41/,
    from: "0x5a",
    why: "the byte after Z is not a token byte",
  },
  {
    file: "src/runtime/http2/huffman.ts",
    line: /nibble < 16; nibble\+\+/,
    to: /16 \+ 1|<=/,
    why: "a step too many is that of the same state again, or is replaced when the next state is looked at",
  },
  {
    file: "src/runtime/http2/requestHead.ts",
    line: /for \(let i = list\.length - 2; /,
    to: /\+ \(2\)$/,
    why: "after the last field there is nothing",
  },
  {
    file: "src/runtime/http2/requestHead.ts",
    line: /head\.list\.length > 0\)/,
    from: "0",
    why: "a field takes two places",
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
    why: "what is in one piece is the same once it was joined; several ranges are five pieces and more",
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
    file: "src/runtime/actions/fileLookup.ts",
    line: /attempts > 0|^const ATTEMPTS_MAX = /,
    to: /^\(attempts\) >= \(0\)$|^\((?:0|1|5) \+ 1\)$/,
    why: "a bound on attempts: one more or fewer makes no difference",
  },
  {
    file: "src/runtime/actions/conditional.ts",
    from: 'MONTHS.indexOf(parts["month"]!)',
    why: "each month is there once",
  },
  {
    file: "src/runtime/actions/conditional.ts",
    from: /^if \(initial !== /,
    to: "",
    why: "the look-up that is saved finds nothing",
  },
  {
    file: "src/runtime/actions/fileTransfer.ts",
    line: /this\.longest = segments\.reduce/,
    from: "0",
    why: "a file of no bytes has no transfer",
  },
  {
    file: "src/runtime/upstream/requestWriter.ts",
    from: /^(?:socket\.writableLength|this\.joined\.length|\+\+this\.pieces) < GATHERED_|<= SMALL_PIECE_BYTES_MAX$/,
    to: /\) <=? \(\w+_MAX\)$/,
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
    line: /\? is : 2 \* is,$/,
    from: "2",
    why: "a mark that differs from that of every other byte, and is larger",
  },
  {
    file: "src/runtime/http1/fieldNames.ts",
    line: /^ {2}const mixed = length \* 67/,
    from: /[*+]|^(?:67|7)$/,
    why: "any function of length and letters finds a name where it was put, if it ignores case",
  },
  {
    file: "src/runtime/http1/fieldNames.ts",
    line: /^const SLOTS = 256;/,
    why: "names share slots, and are found in them all the same",
  },
  {
    file: "src/runtime/http1/fieldNames.ts",
    from: "SINGLE_FIELDS.indexOf(field)",
    why: "each is listed once",
  },
  {
    file: "src/runtime/http1/fieldNames.ts",
    from: "1",
    line: /mixed & \(SLOTS - 1\)/,
    why: "names share slots, and are found in them all the same",
  },
  {
    file: "src/runtime/http1/answerWriter.ts",
    from: "socket.cork();",
    why: "the same bytes in more writes",
  },
  {
    file: "src/runtime/http1/answerWriter.ts",
    from: 'if (this.held === "") return;',
    why: "to write nothing does nothing",
  },
  {
    file: "src/runtime/http1/framing.ts",
    line: /private left = 0;/,
    why: "nothing may be sent before a message begins, whatever this is",
  },
  {
    file: "src/runtime/http1/requestHead.ts",
    from: /"HTTP\/1\.1"/,
    line: /^ {2}if \(text === "HTTP\/1\.1"\) return/,
    to: /^(?:""|)$/,
    why: "the usual case first: what follows comes to the same",
  },
  {
    file: "src/runtime/http1/responseHead.ts",
    line: /^export const UNTIL_CLOSE = -2;/,
    why: "any number below -1",
  },
  {
    file: "src/runtime/http1/responseHead.ts",
    from: "listed ? [] : undefined",
    why: "a list that is made later is the same",
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
    from: /^(?:text\.length - end(?: > USUAL_BYTES_MAX)?|much \? .*)$/,
    why: "decides what the text of a head keeps in memory, not what it says",
  },
  {
    file: "src/runtime/http1/headReader.ts",
    line: /Math\.max\(0, before - 3\)/,
    from: "0",
    why: "no head begins with its end",
  },
  {
    file: "src/runtime/http1/fields.ts",
    line: /^ {4}let seen = 0;/,
    why: "every byte of a name adds this bit, or a larger one",
  },
  {
    file: "src/runtime/http1/fields.ts",
    line: /number === name\.OTHER &&$|\(seen > 1 \|\|/,
    to: /^\(number === name\.OTHER\) \|\| |^\(seen\) >= \(1\)$/,
    why: "the fates of names that have numbers are the same by their letters, and those of plain names",
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
    from: /^(?:!?last\.again|if \(!last\.again\).*|last\.again = true;|true|false)$/s,
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
    line: /^const LENGTHS/,
    from: "0",
    why: "a length whose bit is set for nothing costs a look-up",
  },
  {
    file: "src/runtime/listen/clientHello.ts",
    from: "at < hello.length",
    to: "(at) <= (hello.length)",
    why: "no extension begins there",
  },
  {
    file: "src/runtime/listen/clientHello.ts",
    line: /list\.length < 5 \|\|/,
    to: /^\(list\.length\) <= \(5\)$|^\(5 \+ 1\)$/,
    why: "a name of no letter is none",
  },
  {
    file: "src/runtime/exchange/singleFields.ts",
    from: /^if \(\(\(LENGTHS |^SINGLE_FIELDS\.indexOf\(/,
    to: /^$|lastIndexOf/,
    why: "a look-up that is saved finds nothing; each name is there once",
  },
  {
    file: "src/runtime/exchange/dispatch.ts",
    from: "this.proofs.size > 0",
    to: /^\(this\.proofs\.size\) >= /,
    why: "none is found among none",
  },
  {
    file: "src/runtime/exchange/httpDate.ts",
    line: /^let formattedSecond = /,
    why: "no clock is set back to 1970",
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
    line: /private (?:resetsAt|endedAt) = 0/,
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
    line: /let bytes = 256;/,
    why: "more room than is needed",
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
    file: "src/runtime/http2/exchange.ts",
    line: /if \(increment > 0 && !this\.closed/,
    from: "0",
    why: "a window opens by a quarter of its size at least, not by one byte",
  },
  {
    file: "src/runtime/http2/exchange.ts",
    line: /new RequestBody\(this, request\.bodyLength, false\)/,
    from: "false",
    why: "what could stay where it is may be copied",
  },
  {
    file: "src/runtime/http2/frameHandler.ts",
    line: /target\.body!\.data\(chunk, from, to, false\)/,
    from: "false",
    why: "what could stay where it is may be copied",
  },
  {
    file: "src/runtime/http2/frameHandler.ts",
    line: /^ {2}private hadData = false;/,
    why: "set when a DATA frame begins, and not asked before",
  },
  {
    file: "src/runtime/http2/frameHandler.ts",
    line: /checkOrder\(type: number, stream: number, flags = 0\)/,
    why: "only flags of SETTINGS count, and these are given",
  },
  {
    file: "src/runtime/node/boundSockets.ts",
    line: /v6 \? 6 : 4, -1,/,
    from: "4",
    why: "Node only asks whether it is 6",
  },
  {
    file: "src/runtime/node/boundSockets.ts",
    line: /const \{ address = "", port = 0 \}/,
    why: "what has no port has no address, and is not used",
  },
  {
    file: "src/runtime/http2/connection.ts",
    line: /exchange\.queued && this\.scheduler\.window > 0/,
    to: "(0 + 1)",
    why: "a window of one byte comes to the same",
  },
  {
    file: "src/runtime/http2/hpackEncoder.ts",
    line: /^ {2}integer\(outbox, 0, 4, FIRST_STATUS\)/,
    to: "(4 + 1)",
    why: "a number of four bits is the same in five",
  },
  {
    file: "src/testing/files.ts",
    line: /^ {2}const local = /,
    from: /^\//,
    why: "what a delivery uploads is one local, or a file",
  },
  {
    file: "src/runtime/listen/listener.ts",
    line: /^ {4}return Math\.max\(1, since /,
    to: "(1 + 1)",
    why: "a millisecond more",
  },
  {
    file: "src/runtime/http2/connection.ts",
    line: /^ {4}const hasRead = /,
    to: /\) > \(/,
    why: "a millisecond more",
  },
  {
    file: "src/runtime/http2/flowControl.ts",
    line: /^ {6}buffer\.set\(from === 0 && /,
    to: "(from) !== (0)",
    why: "saves a view of all bytes",
  },
  {
    file: "src/runtime/listen/listenOwner.ts",
    line: /readdirSync\("\/proc"\)\.filter\(/,
    to: 'readdirSync("/proc")',
    why: "names are sorted: what is not a number comes last, and only `self` of it has descriptors",
  },
  {
    file: "src/runtime/exchange/receiveBuffer.ts",
    from: "bytes < VIEWS_MAX",
    why: "which views are kept makes no difference to what they show",
  },
  {
    file: "src/runtime/http2/connection.ts",
    line: /^ {4}this\.reader\.stopped = true;/,
    why: "only saves reading what nobody answers: streams and outbox are closed",
  },
  {
    file: "src/runtime/http1/connection.ts",
    line: /^ {2}private keepAlive = true;/,
    why: "set with every head but that of a 101, after which no other message begins",
  },
  {
    file: "src/runtime/http1/connection.ts",
    from: "if (this.input.paused) return;",
    why: "to pause once more changes nothing",
  },
  ...["http1/answerWriter.ts", "upstream/requestWriter.ts"].map((file) => ({
    file: `src/runtime/${file}`,
    line: /^ {2,6}(?:if \(after !== ""\) )?(?:socket\.write\(after, |this\.text\.direct\(\))/,
    to: /^(?:|"")$/,
    from: /^(?:"latin1"|this\.text\.direct\(\);)$/,
    why: "two ways to write the same bytes",
  })),
  {
    file: "src/runtime/http1/exchange.ts",
    line: /new Http1Body\(this, -1, /,
    from: /^(?:this\.client\.scheme === )?"http"$/,
    why: "a tunnel's bytes are in memory that changes in any case",
  },
  {
    file: "src/runtime/upstream/requestWriter.ts",
    line: /^ {2}private pieces = 0;|^ {6}this\.pieces = 0;/,
    why: "what was gathered is written earlier",
  },
  {
    file: "src/runtime/upstream/requestWriter.ts",
    line: /this\.socket\.write\("", /,
    from: '"latin1"',
    why: "nothing is the same in every encoding",
  },
  {
    file: "src/runtime/exchange/pieceQueue.ts",
    line: /^ {2}private block(?:From|At|IsLast) = /,
    why: "set with the first block, before it is asked",
  },
  {
    file: "src/runtime/exchange/sendPace.ts",
    line: /^ {2}private last = 0;/,
    why: "set with every write, before it is asked",
  },
  {
    file: "src/runtime/exchange/sendPace.ts",
    line: /this\.trialBytes > 0/,
    from: "0",
    why: "no trial costs a single byte",
  },
  {
    file: "src/runtime/exchange/receiveBuffer.ts",
    line: /^ {2}transient = true;/,
    why: "set with every read into a buffer; bytes that come another way are in memory of their own",
  },
  {
    file: "src/runtime/exchange/receiveBuffer.ts",
    line: /return bytes >= SHARED_BYTES/,
    to: "(bytes) > (SHARED_BYTES)",
    why: "another view of the same bytes",
  },
  {
    file: "src/runtime/node/probe.ts",
    line: /^const KEY = |^let connections = 0;|identity: "portico"/,
    why: "any key, number or name would do",
  },
  {
    file: "src/runtime/node/reads.ts",
    line: /^ {2}const probe = new Socket\(/,
    why: "it reads nothing: only where it keeps this is looked at",
  },
  ...sizes("http1/headReader.ts", "USUAL_BYTES_MAX"),
  ...sizes("http1/answerWriter.ts", "JOINED_BYTES_MAX", "JOINED_KEPT_BYTES_MAX", "BATCHED_TEXT_MAX"),
  ...sizes("http2/outbox.ts", "max"),
  ...sizes("http2/connection.ts", "OUTBOX_BYTES_MAX"),
  ...sizes("http2/flowControl.ts", "BYTEWISE_MAX"),
  ...sizes("http2/hpackEncoder.ts", "RECURRING_BYTES_MAX", "NAMES_MAX", "LENGTH_BYTES_MAX"),
  ...sizes("upstream/requestWriter.ts", "GATHERED_BYTES_MAX", "GATHERED_PIECES_MAX"),
  ...sizes("exchange/writeBatch.ts", "SMALL_PIECE_BYTES_MAX"),
  ...sizes("exchange/receiveBuffer.ts", "VIEWS_MAX"),
  ...sizes("exchange/pieceQueue.ts", "JOINED_BYTES", "BLOCK_BYTES_MAX"),
  ...sizes("actions/fileTransfer.ts", "POOL_MAX"),
  {
    file: "src/runtime/process/descriptorWatch.ts",
    line: /^ {4}if \(now < this\.lookAt\) return;|^ {2}private lookAt = 0;/,
    to: /^(?:|\(0 \+ 1\))$/,
    why: "looks four times a second instead of once; what is found is reported when it changes, all the same",
  },
  {
    file: "src/runtime/process/acknowledgements.ts",
    from: "this.open.delete(turn);",
    why: "what is done is looked at once more when somebody answers or goes, and is done once more",
  },
  {
    file: "src/runtime/process/generation.ts",
    to: "(performance.now() - worker.startedAt) <= (EARLY_EXIT_MS)",
    why: "the clock has fractions of milliseconds",
  },
  {
    file: "src/runtime/process/workerHandle.ts",
    from: "fds.indexOf(fd)",
    why: "each descriptor is there once",
  },
  {
    file: "src/runtime/process/master.ts",
    line: /drainDelayMs \?\? 0;/,
    why: "who has loaded nothing has nothing to accept: nothing is not more than nothing, and a millisecond is not noticed",
  },
  {
    file: "src/runtime/process/workerServer.ts",
    line: /^ {2}if \(typeof value !== "object" \|\| value === null\) return value;/,
    to: /^(?:!\(typeof|\(typeof value\) ===|\(value\) !==)/,
    why: "nothing changes a config; code that did would fail in the tests, whose configs are frozen",
  },
  {
    file: "src/runtime/process/workerServer.ts",
    from: "Object.values(value).forEach(frozen);",
    why: "nothing changes a config; code that did would fail in the tests, whose configs are frozen",
  },
  {
    file: "src/runtime/process/workerServer.ts",
    from: 'challenges.filter((one) => one.type === "tls-alpn-01")',
    to: "challenges",
    why: "the others have no name that anybody could ask for",
  },
  {
    file: "src/runtime/process/workerServer.ts",
    from: "this.routes.close();",
    why: "the process ends next",
  },
  {
    file: "src/runtime/process/certificateList.ts",
    from: /\(\.\*\)\$\/m?$/,
    to: /\(\.\*\)\/m?$/,
    why: "to the end of a line, as far as the rest goes",
  },
  {
    file: "src/runtime/acme/x509.ts",
    from: "if (keyIdentifier === undefined) return undefined;",
    to: "",
    why: "what nothing can be read from is caught",
  },
  {
    file: "src/runtime/acme/x509.ts",
    line: /^const DAY_MS = |randomBytes\(16\)/,
    from: /^(?:3_600_000|16)$/,
    why: "a day that is 24 milliseconds longer; any number of up to twenty bytes",
  },
  {
    file: "src/runtime/acme/x509.ts",
    from: '"latin1"',
    why: "a name is ASCII",
  },
  {
    file: "src/runtime/acme/der.ts",
    line: /"latin1"|Buffer\.from\(text, "utf8"\)/,
    from: /^"(?:latin1|utf8)"$/,
    why: "digits are ASCII, and UTF-8 is what Node takes in any case",
  },
  {
    file: "src/runtime/load/derValues.ts",
    line: /const more = first < 0x80/,
    to: /^\(first\) <= |^\(128 \+ 1\)$/,
    why: "with this bit alone, a length has no more bytes",
  },
  {
    file: "src/runtime/acme/der.ts",
    from: /^\/\[-:T\]/,
    why: "Node writes milliseconds after the point",
  },
  {
    file: "src/runtime/acme/ledger.ts",
    line: /until: exempt \? 0 : |return counted\.length < most \? 0 : |b\.until > a\.until/,
    to: /^\(0 \+ 1\)$|>=/,
    why: "1970 is long past, and of two equal times it does not matter which is said",
  },
  {
    file: "src/runtime/acme/stateFiles.ts",
    line: /text \?\? "null"/,
    to: /^(?:text|"")$/,
    why: "what cannot be parsed is taken for absent as well",
  },
  {
    file: "src/runtime/acme/stateFiles.ts",
    line: /^ {4}drafts\.delete\(draft\);|JSON\.stringify\(value, null, 2\)|^ {4}await rm\(\w+, \{ force: true \}\)|^ {2}for \(const path of left\)/,
    from: /^(?:drafts\.delete\(draft\);|2|true)$/,
    why: "a name is not used again; how far lines are indented; an error that comes to nothing in the end",
  },
  {
    file: "src/runtime/acme/certificateFile.ts",
    from: '(await readState(certificateFile(folder))) ?? ""',
    why: "no text is then read as the word undefined, which is no certificate",
  },
  {
    file: "src/runtime/listen/firstBytes.ts",
    from: '"close"',
    line: /\.off\("close", stop\)\.pause\(\);/,
    why: "a timer that was stopped is stopped again",
  },
  {
    file: "src/runtime/listen/gate.ts",
    line: /^ {4}if \(client === undefined\) return;$/,
    to: "",
    why: "what is counted for nobody is not asked for",
  },
  {
    file: "src/runtime/listen/gate.ts",
    to: /^\(now - .* > \(WARN_MS\)$/,
    why: "the clock has fractions of milliseconds",
  },
  {
    file: "src/runtime/load/certificateExpiry.ts",
    from: /^certificatesOf\(contents\.cert\)\.filter/,
    why: "a chain with a certificate that cannot be read is refused when it is loaded: the filter is for the type",
  },
  {
    file: "src/runtime/load/ownAddress.ts",
    from: "9",
    why: "any port: nothing is sent",
  },
  {
    file: "src/runtime/process/control.ts",
    line: /socket\.setEncoding\("utf8"\)/,
    from: '"utf8"',
    why: "the encoding that Node takes in any case",
  },
  {
    file: "src/runtime/process/control.ts",
    from: "socket.resume();",
    why: "what nobody listens to any more flows on by itself",
  },
  {
    file: "src/runtime/process/control.ts",
    line: /timeoutMs \/ 1000/,
    from: "1000",
    why: "how long an answer was waited for, in whole seconds: a thousandth more makes no difference",
  },
  {
    file: "src/runtime/process/health.ts",
    line: /^ {4}const idleMs = /,
    from: "0",
    why: "any time below a minute",
  },
  {
    file: "src/runtime/process/control.ts",
    from: "performance.now() > deadline",
    to: /^\(.*\) >= /,
    why: "the clock has fractions of milliseconds",
  },
  {
    file: "src/runtime/process/control.ts",
    from: "if (performance.now() > deadline) return outcome;",
    to: "",
    why: "the next answer then has no time left: it is another problem",
  },
  {
    file: "src/runtime/process/descriptorLimit.ts",
    from: /^\/\^Max open files/,
    to: /\\S\*/,
    why: "neither limit is `unlimited`: the kernel has one of its own",
  },
  {
    file: "src/runtime/process/places.ts",
    from: "this.sockets.closeAll();",
    why: "a stop has closed them",
  },
  {
    file: "src/runtime/acme/client.ts",
    from: "/<([^<>]*)>([^<]*)/g",
    why: "an authority's link has a URL and a relation",
  },
  {
    file: "src/runtime/acme/certificateFile.ts",
    from: /^\/-----BEGIN PRIVATE KEY-----/,
    why: "a key of nothing is not a key",
  },
  {
    file: "src/runtime/acme/schedule.ts",
    line: /history\.retryAt \?\? 0|issuedAt = 0, renewal/,
    from: "0",
    to: "(0 + 1)",
    why: "both are a time long past",
  },
  {
    file: "src/runtime/acme/schedule.ts",
    line: /Math\.min\(failures - 1, (?:20|10)\)/,
    from: /^(?:20|10)$/,
    why: "keeps a number finite; the longest pause is reached before",
  },
  {
    file: "src/runtime/acme/keeper.ts",
    line: /return \(this\.history\.retryAt \?\? 0\) > now;/,
    from: /^(?:this\.history\.retryAt \?\? )?0$/,
    why: "neither nothing nor 1970 is later than now",
  },
  {
    file: "src/runtime/logs/logFile.ts",
    line: /if \("stream" in target\) return undefined;/,
    to: "",
    why: "only files are opened and opened again",
  },
  {
    file: "src/runtime/logs/logFile.ts",
    line: /^ {4}(?:if \(isFull\(\)\) )?await delay\(FULL_MIN_MS\);|^ {6}if \(isFull\(\)\) await delay/,
    why: "keeps a processor from being busy while a pipe is full; how often it is tried changes nothing",
  },
  {
    file: "src/runtime/logs/logFile.ts",
    line: /if \(this\.timer !== undefined \|\| this\.writing\) return;/,
    to: /^(?:|\(this\.timer !== undefined\) && \(this\.writing\))$/,
    why: "one timer more finds nothing left to write",
  },
  {
    file: "src/runtime/logs/logFile.ts",
    from: "clearTimeout(this.timer);",
    why: "one timer more finds nothing left to write",
  },
  {
    file: "src/runtime/logs/logFile.ts",
    from: /^this\.pending\.length >= BATCH_BYTES$/,
    to: /^\(this\.pending\.length\) > /,
    why: "a size that was measured best; one more makes no difference",
  },
  {
    file: "src/runtime/logs/logFile.ts",
    line: /this\.held > HELD_BYTES_MAX \/ 2\) return;/,
    from: /^(?:2|this\.held > HELD_BYTES_MAX \/ 2)$/,
    to: /^\((?:2 \+ 1|this\.held\) >= .*)\)$/,
    why: "how much has to be written before it is said again; the exact size makes no difference",
  },
  {
    file: "src/runtime/logs/logFile.ts",
    line: /^ {4}if \(!this\.writing\) this\.batch = undefined;|^ {4}this\.pending = "";/,
    to: "",
    why: "in the last moment of a process: nothing looks at it any more",
  },
  {
    file: "src/runtime/logs/logFormat.ts",
    line: /^const shared: Clock = /,
    why: "set before it is asked",
  },
  {
    file: "src/runtime/logs/logFormat.ts",
    line: /^ {4}shared\.second = second;|^ {2}if \(!UNSAFE\.test\(text\)\) return/,
    to: "",
    why: "only saves work that comes to the same",
  },
  {
    file: "src/runtime/logs/logFiles.ts",
    from: "if (files.length === 1) return { write: (exchange) => only.append(line(exchange)) };",
    why: "only saves work that comes to the same",
  },
  {
    file: "src/runtime/logs/streams.ts",
    line: /^ {2}if \(line\.length \* 3 <= bytesMax \|\|/,
    from: /^(?:3|line\.length \* 3 <= bytesMax)$/,
    to: /^\((?:3 \+ 1|line\.length \* 3\) < .*)\)$/,
    why: "only saves counting bytes",
  },
  ...sizes("logs/logFile.ts", "BATCH_BYTES"),
  ...sizes("node/probe.ts", "LARGE_BYTES"),
  ...sizes("listen/listenOwner.ts", "PROCESSES_MAX"),
  {
    file: "src/runtime/node/probe.ts",
    line: /^ {6}(?:near|far)\.destroy\(\);|^ {2}socket\.destroy\(\);/,
    to: "",
    why: "a connection of this process to itself: each end closes the other",
  },
  {
    file: "src/runtime/load/tlsPolicyCheck.ts",
    from: /^(?:serving|asking)\.destroy\(\);$/,
    to: "",
    why: "both ends are in memory: nothing stays open",
  },
  {
    file: "src/runtime/load/credentialSet.ts",
    line: /readFile\(`\/proc\/\$\{pid\}\/status`, "latin1"\)/,
    from: '"latin1"',
    why: "an expression reads bytes as text as well",
  },
  {
    file: "src/runtime/listen/listener.ts",
    from: "this.proofServers.size > 0",
    to: /^\(this\.proofServers\.size\) >= /,
    why: "without a choice it only saves reading what the client says first",
  },
  {
    file: "src/runtime/listen/certificateServers.ts",
    line: /own\.add\(names, true\)/,
    from: "true",
    why: "any value that is there",
  },
  {
    file: "src/runtime/listen/listener.ts",
    from: 'socket.off("close", this.forget);',
    to: "",
    why: "what was forgotten is not there to be forgotten again: it only costs a listener for each connection",
  },
  {
    file: "src/runtime/listen/listener.ts",
    line: /socket\.off\("close", this\.forget\)/,
    from: '"close"',
    why: "the same",
  },
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
