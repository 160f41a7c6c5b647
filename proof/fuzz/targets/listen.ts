import { isIP } from "node:net";
import { isDeepStrictEqual } from "node:util";
import { canonicalAddress } from "../../../src/model/index.js";
import { clientHelloOf } from "../../../src/runtime/tls/clientHello.js";
import { proxyHeaderOf } from "../../../src/runtime/listen/proxyHeader.js";
import { demand, type FuzzTarget } from "../target.js";

const proxyHeader: FuzzTarget = {
  name: "proxy-header",
  dictionary: [
    "PROXY ",
    "TCP4 ",
    "TCP6 ",
    "UNKNOWN",
    "192.0.2.1 198.51.100.2 ",
    "2001:db8::7 ::ffff:192.0.2.1 ",
    "55555 443\r\n",
    "\r\n",
    "\r\n\r\n\0\r\nQUIT\n",
    "\x20\0\0\0",
    "\x21\x11\0\x0c",
    "\x21\x11\0\x13",
    "\x21\x21\0\x24",
    "\x21\x31\0\xd8",
    "\0\0\0\0\0\0\0\0\0\0\xff\xff",
    "\x03\0\x04",
    "\x04\0\0",
  ],
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
  dictionary: [
    "\x16\x03\x01\0\x80",
    "\x16\x03\x03\0\0",
    "\x01\0\0\x7c\x03\x03",
    "\0\x02\x13\x01\x01\0",
    "\0\0\0\x10\0\x0e\0\0\x0bexample.org",
    "\0\x10\0\x0d\0\x0b\x0aacme-tls/1",
    "\0\x10\0\x0e\0\x0c\x02h2\x08http/1.1",
    "\xff\xff",
  ],
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
