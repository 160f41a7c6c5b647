/** Bytes as text, one char a byte: Node's own conversion without the look-up of its encoding, which costs more. */
export function latin1(bytes: Uint8Array, from: number, to: number): string {
  return (bytes as Sliced).latin1Slice?.(from, to) ?? (bytes as Buffer).toString("latin1", from, to);
}

/** Every Buffer has had it since Node 0.1, though it is not documented. */
interface Sliced extends Uint8Array {
  latin1Slice?(from: number, to: number): string;
}
