import { isIP } from "node:net";
import { isDeepStrictEqual } from "node:util";
import { canonicalAddress } from "../../../src/model/index.js";
import { clientHelloOf } from "../../../src/runtime/tls/clientHello.js";
import { proxyHeaderOf } from "../../../src/runtime/listen/proxyHeader.js";
import { WORDS } from "../cases/words.js";
import { demand, type FuzzTarget } from "../target.js";

const proxyHeader: FuzzTarget = {
  name: "proxy-header",
  dictionary: WORDS.proxyHeader,
  run(input) {
    const said = proxyHeaderOf(input);
    sameHoweverCut(input, said, proxyHeaderOf);
    if (said === undefined || "malformed" in said) return;
    const { length, endpoints } = said;
    demand(length > 0 && length <= input.length, "bytes that have not come are part of it", length);
    demand(isDeepStrictEqual(proxyHeaderOf(input.subarray(0, length)), said), "what follows has a say", said);
    if (endpoints === undefined) return;
    const { address, port, localAddress } = endpoints;
    for (const one of [address, localAddress]) {
      demand(isIP(one) !== 0 && canonicalAddress(one) === one, "not an address in canonical form", one);
      demand(!/^::ffff:[0-9a-f]+:[0-9a-f]+$/.test(one), "an IPv4 address as IPv6", one);
    }
    demand(Number.isInteger(port) && port >= 0 && port <= 65_535, "not a port", port);
  },
};

const clientHello: FuzzTarget = {
  name: "client-hello",
  dictionary: WORDS.clientHello,
  run(input) {
    const hello = clientHelloOf(input);
    sameHoweverCut(input, hello, clientHelloOf);
    if (hello === undefined) return;
    demand(hello.serverName === hello.serverName.toLowerCase(), "capitals in the name", hello);
    demand(/^[\x21-\x7e]*$/.test(hello.serverName), "not a name", hello);
  },
};

/** What was said of bytes is said of them with others after them; of fewer, the same or nothing. */
function sameHoweverCut<T>(
  input: Buffer,
  said: T | undefined,
  parse: (bytes: Buffer) => T | undefined,
): void {
  if (said === undefined) return;
  const more = parse(Buffer.concat([input, Buffer.from("\x16\x03\x01GET / \r\n")]));
  demand(isDeepStrictEqual(more, said), "more bytes change what was said", { said, more });
  for (const end of [1, input.length >> 1, input.length - 1]) {
    const less = end < 1 ? undefined : parse(input.subarray(0, end));
    demand(less === undefined || isDeepStrictEqual(less, said), "fewer bytes say something else", {
      less,
      said,
    });
  }
}

export const LISTEN_TARGETS: readonly FuzzTarget[] = [proxyHeader, clientHello];
