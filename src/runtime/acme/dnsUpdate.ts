import { connect } from "node:net";
import type { DnsProofsOf } from "../../model/serving.js";
import { challengeName } from "../../model/serving.js";
import { tsigKeyIn } from "../load/dnsFiles.js";
import { AcmeError } from "./acmeError.js";
import { requiredFile } from "./stateFiles.js";
import { type TxtChange, refusalIn, signed, type TxtRecord, updateMessage } from "./dnsMessage.js";
import type { DnsProvider, Proof } from "./dnsProvider.js";

/** Writes records by a signed update of their zone (RFC 2136). */
export class DnsUpdates implements DnsProvider {
  constructor(private readonly config: DnsProofsOf<"rfc2136">) {}

  get nameServers() {
    const { nameServers = [], server } = this.config;
    return nameServers.length > 0 ? nameServers : [server];
  }

  records(proofs: readonly Proof[]): Promise<TxtRecord[]> {
    const { alias } = this.config;
    return Promise.resolve(proofs.map(({ name, value }) => ({ name: alias ?? challengeName(name), value })));
  }

  async write(change: TxtChange, records: readonly TxtRecord[], signal: AbortSignal): Promise<void> {
    const { server, zone, keyFile, ttlSeconds } = this.config;
    const key = tsigKeyIn(await requiredFile(keyFile));
    if (key === undefined) throw new AcmeError("file", `${keyFile} is not a key as tsig-keygen writes it`);
    // This is the real time: a signature is valid for minutes.
    const seconds = Math.floor(Date.now() / 1000);
    const request = signed(updateMessage(zone, change, records, ttlSeconds), key, seconds);
    const response = await exchange(server, request.bytes, signal).catch((error: Error) => {
      throw new AcmeError("dnsUpdate", AcmeError.ofNetwork(server.address, error).detail);
    });
    const refusal = refusalIn(response, request, key);
    if (refusal !== undefined) throw new AcmeError("dnsUpdate", `${server.address}: ${refusal}`);
  }
}

const RESPONSE_MS = 10_000;

/** Sends a message over TCP and returns the response (RFC 1035, 4.2.2), which has at most 65,535 bytes. */
function exchange(
  { address, port }: DnsProofsOf<"rfc2136">["server"],
  message: Buffer,
  signal: AbortSignal,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const socket = connect({ host: address, port });
    const stop = (): void => void socket.destroy(new Error("portico stops"));
    const timer = setTimeout(() => socket.destroy(new Error("it did not respond in time")), RESPONSE_MS);
    signal.addEventListener("abort", stop);
    const length = Buffer.alloc(2);
    length.writeUInt16BE(message.length);
    socket.write(Buffer.concat([length, message]));
    // It may come byte by byte.
    const received = Buffer.allocUnsafe(2 + 0xffff);
    let bytes = 0;
    socket.on("data", (chunk: Buffer) => {
      bytes += chunk.copy(received, bytes);
      const end = bytes < 2 ? Infinity : 2 + received.readUInt16BE(0);
      if (bytes < end) return;
      resolve(received.subarray(2, end));
      socket.destroy();
    });
    socket.on("error", reject);
    socket.on("close", () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
      reject(new Error("it closed the connection without a response"));
    });
  });
}
