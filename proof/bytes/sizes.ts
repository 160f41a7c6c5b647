const around = (bytes: number): number[] => [bytes - 1, bytes, bytes + 1];

/**
 * Sizes at which a buffer, block, frame, window or batch of `src/runtime` is full, and the sizes beside them: views of the
 * shared buffer and moved bytes, pieces and records, TLS pieces, the shared buffer and windows, first own buffers, the work
 * of a turn, gathered writes, cached files and connection windows, own buffers, stream windows.
 */
export const SIZES: readonly number[] = [
  ...[0, 1],
  ...[2_048, 4_096, 8_192, 16_384, 32_768].flatMap(around),
  50_000,
  ...[65_536, 131_072, 262_144, 491_520, 524_288, 1_048_576].flatMap(around),
  3 * 1_048_576,
  4 * 1_048_576 + 1,
];
